// What parity runs leave behind, put together from the ranks.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/transfer.h"
#include "train/parity.h"

namespace tera {

void WholeTensors::put(const std::string& name, double& to, double x) {
    if (!std::isnan(to) && to != x) differing_.insert({name, std::abs(to - x)});
    to = x;
}

void WholeTensors::put(const Exec& exec, const ParamSlice& slice, const Tensor& elements) {
    TERA_CHECK(elements.dtype == DType::f64, name_of(elements.dtype));
    std::vector<double> host(static_cast<std::size_t>(elements.numel()));
    copy_to_host(exec, host.data(), elements);
    const Param& p = *slice.param;
    const std::lock_guard lock(mutex_);
    auto& whole = tensors_[p.name];
    if (whole.empty())
        whole.assign(static_cast<std::size_t>(p.full_shape.numel()), std::numeric_limits<double>::quiet_NaN());
    for (const ElementRun& run : runs_of(slice))
        for (std::int64_t i = 0; i < run.count; ++i)
            put(p.name, whole[static_cast<std::size_t>(run.full + i)], host[static_cast<std::size_t>(run.local + i)]);
}

void WholeTensors::put(const std::string& name, const std::vector<double>& part) {
    const std::lock_guard lock(mutex_);
    auto& whole = tensors_[name];
    if (whole.empty()) whole.assign(part.size(), std::numeric_limits<double>::quiet_NaN());
    TERA_CHECK(whole.size() == part.size(), name, ": ", whole.size(), " and ", part.size(), " elements");
    for (std::size_t i = 0; i < part.size(); ++i)
        if (!std::isnan(part[i])) put(name, whole[i], part[i]);
}

void ParityRecord::add(int step, const StepOutcome& outcome) {
    const std::lock_guard lock(mutex_);
    if (static_cast<int>(steps.size()) == step) steps.push_back(outcome);
    const StepOutcome& first = steps[static_cast<std::size_t>(step)];
    agreed = agreed && first.loss.loss == outcome.loss.loss && first.grad_norm == outcome.grad_norm &&
             first.grad_zeros == outcome.grad_zeros && first.skipped == outcome.skipped;
}

namespace {

/// Numbers and texts from one rank to another, in host memory.
class HostMail {
  public:
    HostMail(Comm& world, int other) : world_(world), other_(other) {}

    template <class T>
    void send(const T* data, std::size_t n) {
        world_.send(exec_, tensor_over(const_cast<T*>(data), n), other_);
    }
    template <class T>
    void recv(T* data, std::size_t n) {
        world_.recv(exec_, tensor_over(data, n), other_);
    }
    void send(std::int64_t x) { send(&x, 1); }
    std::int64_t number() {
        std::int64_t x = 0;
        recv(&x, 1);
        return x;
    }

  private:
    template <class T>
    static Tensor tensor_over(T* data, std::size_t n) {
        return Tensor(reinterpret_cast<std::byte*>(data), DType::u8, Device::cpu,
                      {static_cast<std::int64_t>(n * sizeof(T))});
    }

    Comm& world_;
    int other_;
    Arena no_memory_;
    Exec exec_{Device::cpu, &no_memory_, nullptr, nullptr};
};

void send_tensors(HostMail& mail, const WholeTensors& tensors) {
    mail.send(static_cast<std::int64_t>(tensors.all().size()));
    for (const auto& [name, values] : tensors.all()) {
        mail.send(static_cast<std::int64_t>(name.size()));
        mail.send(name.data(), name.size());
        mail.send(static_cast<std::int64_t>(values.size()));
        mail.send(values.data(), values.size());
    }
}

void take_tensors(HostMail& mail, WholeTensors& tensors) {
    for (std::int64_t n = mail.number(); n > 0; --n) {
        std::string name(static_cast<std::size_t>(mail.number()), ' ');
        mail.recv(name.data(), name.size());
        std::vector<double> values(static_cast<std::size_t>(mail.number()));
        mail.recv(values.data(), values.size());
        tensors.put(name, values);
    }
}

/// What of a step all ranks must agree on.
std::array<double, 4> essence(const StepOutcome& s) {
    return {s.loss.loss, s.grad_norm.value_or(-1), s.grad_zeros.value_or(-1), s.skipped ? 1.0 : 0.0};
}

}  // namespace

void ParityRecord::gather(Comm& world) {
    if (world.rank() != 0) {
        HostMail mail(world, 0);
        for (const StepOutcome& step : steps) mail.send(essence(step).data(), 4);
        send_tensors(mail, grads);
        send_tensors(mail, weights);
        return;
    }
    for (int r = 1; r < world.size(); ++r) {
        HostMail mail(world, r);
        for (const StepOutcome& step : steps) {
            std::array<double, 4> theirs{};
            mail.recv(theirs.data(), 4);
            agreed = agreed && theirs == essence(step);
        }
        take_tensors(mail, grads);
        take_tensors(mail, weights);
    }
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        // A NaN is the largest difference there is.
        const double d = std::abs(a[i] - b[i]);
        difference = d <= difference ? difference : d;
        size = std::max(size, std::abs(b[i]));
    }
    return size > 0 ? difference / size : difference;
}

}  // namespace tera
