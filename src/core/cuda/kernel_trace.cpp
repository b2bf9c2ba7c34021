// CUPTI hands out filled buffers through plain functions without a user pointer, so the records of the one trace that
// can run at a time are kept in this file. Only fields that every version of a record has at the same place are read:
// the oldest declarations of the records serve for all of them.
#include "core/kernel_trace.h"

#include "core/cuda/check.h"

#if __has_include(<cupti.h>)

#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#ifndef TERA_CUDA_LIBRARY_DIR
#define TERA_CUDA_LIBRARY_DIR ""
#endif

namespace tera {
namespace {

struct Library {
    decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
    decltype(&cuptiActivityEnable) enable = nullptr;
    decltype(&cuptiActivityDisable) disable = nullptr;
    decltype(&cuptiActivityFlushAll) flush = nullptr;
    decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
    decltype(&cuptiGetResultString) result_text = nullptr;
    std::string why_not;
};

constexpr CUpti_ActivityKind recorded_kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                                 CUPTI_ACTIVITY_KIND_MEMSET};

std::vector<std::string> places() {
    const std::string exact = cat("libcupti.so.", CUDART_VERSION / 1000), plain = "libcupti.so";
    std::vector<std::string> folders = {"", TERA_CUDA_LIBRARY_DIR};
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
        if (const char* home = std::getenv(variable)) {
            folders.push_back(cat(home, "/extras/CUPTI/lib64"));
            folders.push_back(cat(home, "/lib64"));
        }
    }
    folders.push_back(cat(TERA_CUDA_LIBRARY_DIR, "/../extras/CUPTI/lib64"));
    folders.push_back("/usr/local/cuda/extras/CUPTI/lib64");
    folders.push_back("/usr/local/cuda/lib64");
    std::vector<std::string> out;
    for (const std::string& name : {exact, plain}) {
        for (const std::string& folder : folders) out.push_back(folder.empty() ? name : cat(folder, "/", name));
    }
    return out;
}

Library load() {
    Library library;
    void* handle = nullptr;
    for (const std::string& place : places()) {
        if ((handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) != nullptr) break;
    }
    if (handle == nullptr) {
        library.why_not = "libcupti is not found; it comes with the CUDA toolkit (set CUDA_HOME to its folder)";
        return library;
    }
    const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
        if (function == nullptr) library.why_not = cat("libcupti has no ", name);
    };
    find(library.register_callbacks, "cuptiActivityRegisterCallbacks");
    find(library.enable, "cuptiActivityEnable");
    find(library.disable, "cuptiActivityDisable");
    find(library.flush, "cuptiActivityFlushAll");
    find(library.next_record, "cuptiActivityGetNextRecord");
    find(library.result_text, "cuptiGetResultString");
    return library;
}

Library& library() {
    static Library loaded = load();
    return loaded;
}

std::string text_of(CUptiResult status) {
    const char* text = nullptr;
    return library().result_text(status, &text) == CUPTI_SUCCESS && text != nullptr ? text : cat("status ", status);
}

void check(CUptiResult status, const char* what) {
    if (status != CUPTI_SUCCESS) throw Error(cat("CUPTI, ", what, ": ", text_of(status)));
}

std::mutex records_lock;
std::vector<DeviceWork> records;

const char* copy_name(std::uint8_t kind) {
    switch (kind) {
        case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
            return "copy host to device";
        case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
            return "copy device to host";
        case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
            return "copy on the device";
        default:
            return "copy";
    }
}

void add_record(const CUpti_Activity* record) {
    DeviceWork work;
    switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_KERNEL:
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
            const auto& k = *reinterpret_cast<const CUpti_ActivityKernel4*>(record);
            work = {DeviceWork::Kind::kernel,
                    k.name == nullptr ? "unnamed" : k.name,
                    k.start,
                    k.end,
                    {k.gridX, k.gridY, k.gridZ},
                    k.streamId,
                    0};
            break;
        }
        case CUPTI_ACTIVITY_KIND_MEMCPY: {
            const auto& c = *reinterpret_cast<const CUpti_ActivityMemcpy*>(record);
            work = {DeviceWork::Kind::copy, copy_name(c.copyKind), c.start, c.end, {}, c.streamId, c.bytes};
            break;
        }
        case CUPTI_ACTIVITY_KIND_MEMSET: {
            const auto& m = *reinterpret_cast<const CUpti_ActivityMemset*>(record);
            work = {DeviceWork::Kind::fill, "fill", m.start, m.end, {}, m.streamId, m.bytes};
            break;
        }
        default:
            return;
    }
    records.push_back(std::move(work));
}

constexpr std::size_t buffer_bytes = std::size_t{8} << 20;

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, buffer_bytes));
    *size = *buffer == nullptr ? 0 : buffer_bytes;
    *most_records = 0;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    const std::lock_guard lock(records_lock);
    CUpti_Activity* record = nullptr;
    while (library().next_record(buffer, valid, &record) == CUPTI_SUCCESS) add_record(record);
    std::free(buffer);
}

/// CUPTI gives the linker's names.
class Demangler {
  public:
    const std::string& operator()(const std::string& name) {
        auto [at, fresh] = known_.try_emplace(name);
        if (fresh) {
            int status = 0;
            const std::unique_ptr<char, void (*)(void*)> text(
                abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
            at->second = status == 0 && text ? text.get() : name;
        }
        return at->second;
    }

  private:
    std::map<std::string, std::string> known_;
};

}  // namespace

KernelTrace::KernelTrace() : why_not_(library().why_not) {
    if (!ready()) return;
    if (const CUptiResult status = library().register_callbacks(give_buffer, take_buffer); status != CUPTI_SUCCESS)
        why_not_ = cat("CUPTI refuses: ", text_of(status));
}

void KernelTrace::start() {
    TERA_CHECK(ready(), why_not_);
    {
        const std::lock_guard lock(records_lock);
        records.clear();
    }
    for (const CUpti_ActivityKind kind : recorded_kinds) check(library().enable(kind), "enabling a kind of record");
}

std::vector<DeviceWork> KernelTrace::stop() {
    TERA_CUDA(cudaDeviceSynchronize());
    check(library().flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "fetching the records");
    for (const CUpti_ActivityKind kind : recorded_kinds) check(library().disable(kind), "disabling a kind of record");
    std::vector<DeviceWork> out;
    {
        const std::lock_guard lock(records_lock);
        out.swap(records);
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    Demangler demangled;
    for (DeviceWork& work : out) {
        if (work.kind == DeviceWork::Kind::kernel) work.name = demangled(work.name);
    }
    return out;
}

}  // namespace tera

#else

namespace tera {

KernelTrace::KernelTrace() : why_not_("this program was built where CUPTI's headers were not") {}
void KernelTrace::start() { TERA_CHECK(ready(), why_not_); }
std::vector<DeviceWork> KernelTrace::stop() { throw Error("no trace was started: " + why_not_); }

}  // namespace tera

#endif
