#include "launch/patient_output.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "core/error.h"

namespace tera {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t piece = 4096;  ///< of one write: small, so that a reader who takes a little is seen to
constexpr auto patience = std::chrono::seconds(1);

}  // namespace

struct PatientOutput::Shared {
    Shared(int to, int event, std::size_t most) : fd(to), news(event), enough(most) {}
    ~Shared() { ::close(news); }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;

    bool given_up() const { return leaving && waiting > 0 && Clock::now() - last_taken > patience; }

    void write_until_closed() {
        for (std::unique_lock lock(mutex);;) {
            changed.wait(lock, [this] { return waiting > 0 || closed; });
            if (closed) return;
            const std::string text = std::exchange(added, {});
            lock.unlock();
            for (std::size_t at = 0; at < text.size();) at += write_piece(text.data() + at, text.size() - at);
            lock.lock();
        }
    }

    /// Output that cannot be written is dropped: the ranks are worth more than their words.
    std::size_t write_piece(const char* text, std::size_t count) {
        ssize_t n = 0;
        do n = ::write(fd, text, std::min(count, piece));
        while (n < 0 && errno == EINTR);
        const std::size_t taken = n > 0 ? static_cast<std::size_t>(n) : count;
        const std::lock_guard lock(mutex);
        waiting -= taken;
        last_taken = Clock::now();
        ::eventfd_write(news, 1);
        return taken;
    }

    const int fd, news;
    const std::size_t enough;
    std::mutex mutex;
    std::condition_variable changed;
    std::string added;        ///< since the thread last looked
    std::size_t waiting = 0;  ///< bytes, with those the thread has
    Clock::time_point last_taken{};
    bool started = false, leaving = false, closed = false;
};

PatientOutput::PatientOutput(int fd, std::size_t enough) {
    const int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    TERA_CHECK(event >= 0, "eventfd: ", std::strerror(errno));
    shared_ = std::make_shared<Shared>(fd, event, enough);
}

PatientOutput::~PatientOutput() {
    const std::lock_guard lock(shared_->mutex);
    shared_->closed = true;
    shared_->changed.notify_one();
}

void PatientOutput::add(std::string text) {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->waiting >= shared_->enough && shared_->given_up()) return;
    if (shared_->waiting == 0) shared_->last_taken = Clock::now();
    shared_->waiting += text.size();
    shared_->added += text;
    // Not before there is something to write: a process that forks had better be alone.
    if (!std::exchange(shared_->started, true))
        std::thread([shared = shared_] { shared->write_until_closed(); }).detach();
    shared_->changed.notify_one();
}

bool PatientOutput::ready() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->waiting < shared_->enough || shared_->given_up();
}

bool PatientOutput::done() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->waiting == 0 || shared_->given_up();
}

void PatientOutput::about_to_leave() {
    const std::lock_guard lock(shared_->mutex);
    shared_->leaving = true;
}

int PatientOutput::news_fd() const { return shared_->news; }

void PatientOutput::clear_news() {
    eventfd_t count = 0;
    ::eventfd_read(shared_->news, &count);
}

}  // namespace tera
