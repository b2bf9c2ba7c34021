// teratron doctor: what this machine has for training, what is missing, and the apt package that brings it.
// GPU libraries are only looked up at run time, so the same binary answers on a machine without any.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "core/build_info.h"
#include "core/cpu_features.h"
#include "core/error.h"
#include "io/parquet_rows.h"

namespace tera {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* help_text =
    "usage: teratron doctor [--json]\n"
    "\n"
    "Prints the processor, memory, BLAS, MPI, GPUs and libraries found here, what is missing and how to get it.\n"
    "  --json   the same as one JSON object\n";

/// A shared library found by name at run time. It stays loaded: vendors' libraries do not all survive being unloaded.
class Library {
  public:
    explicit Library(const char* name) : handle_(dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {}

    bool found() const { return handle_ != nullptr; }
    template <class Function>
    Function* function(const char* name) const {
        return handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle_, name));
    }

  private:
    void* handle_;
};

bool command_on_path(const std::string& name) {
    const char* path = std::getenv("PATH");
    std::stringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
        if (access((folder + "/" + name).c_str(), X_OK) == 0) return true;
    }
    return false;
}

/// A line of /proc/meminfo in bytes, 0 when it is not there.
int64_t meminfo_bytes(const std::string& key) {
    std::ifstream in("/proc/meminfo");
    for (std::string line; std::getline(in, line);) {
        if (line.rfind(key + ":", 0) == 0) return std::atoll(line.c_str() + key.size() + 1) * 1024;
    }
    return 0;
}

/// The memory limit of this container, 0 when there is none.
int64_t cgroup_limit_bytes() {
    for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
        std::ifstream in(path);
        int64_t bytes = 0;
        if (in >> bytes && bytes > 0 && bytes < (int64_t{1} << 60)) return bytes;
    }
    return 0;
}

Json examine_cpu() {
    Json cpu;
    cpu["model"] = cpu_model_name();
    cpu["usable_processors"] = cpu_count();
    cpu["features"] = Json::array();
    cpu["built_for"] = Json::array();
    cpu["unused_features"] = Json::array();
    for (const CpuFeature& f : cpu_features()) {
        if (f.present) cpu["features"].push_back(f.name);
        if (f.built_for) cpu["built_for"].push_back(f.name);
        if (f.present && !f.built_for) cpu["unused_features"].push_back(f.name);
    }
    return cpu;
}

Json examine_memory() {
    return {{"total_bytes", meminfo_bytes("MemTotal")},
            {"available_bytes", meminfo_bytes("MemAvailable")},
            {"container_limit_bytes", cgroup_limit_bytes()}};
}

Json examine_disk() {
    struct statvfs fs;
    if (statvfs(".", &fs) != 0) return {{"free_bytes", nullptr}};
    return {{"folder", "."}, {"free_bytes", int64_t{1} * fs.f_bavail * fs.f_frsize}};
}

// Matrix products on the CPU are our own (ops/gemm_kernel.h), in the widest vectors the binary was built for.
Json examine_matrix_products() {
    std::string vectors = "of the plain instruction set";
    for (const CpuFeature& f : cpu_features()) {
        const std::string name = f.name;
        if (f.built_for && (name == "avx" || name == "avx512f")) vectors = name == "avx" ? "AVX" : "AVX-512";
    }
    return {{"library", "own kernels"}, {"vectors", vectors}};
}

// The driver is asked through NVML for what it reports, and through libcuda for whether programs can start on it.
Json examine_gpus() {
    Json gpu = {{"driver", nullptr}, {"cuda_version", nullptr}, {"devices", Json::array()}};
    Library cuda("libcuda.so.1");
    if (!cuda.found()) {
        gpu["problem"] = "no NVIDIA driver (libcuda.so.1 not found)";
        return gpu;
    }
    auto* init = cuda.function<int(unsigned)>("cuInit");
    const int status = init == nullptr ? -1 : init(0);
    if (status != 0) {
        gpu["problem"] = cat("the NVIDIA driver library is here but cuInit fails with code ", status,
                             status == 100 ? " (no GPU)" : "");
    }
    if (auto* f = cuda.function<int(int*)>("cuDriverGetVersion")) {
        int version = 0;
        if (f(&version) == 0) gpu["cuda_version"] = cat(version / 1000, ".", version % 1000 / 10);
    }
    int count = 0;
    auto* get_count = cuda.function<int(int*)>("cuDeviceGetCount");
    if (status == 0 && get_count != nullptr && get_count(&count) != 0) count = 0;
    auto* get_name = cuda.function<int(char*, int, int)>("cuDeviceGetName");
    auto* get_memory = cuda.function<int(size_t*, int)>("cuDeviceTotalMem_v2");
    auto* get_attribute = cuda.function<int(int*, int, int)>("cuDeviceGetAttribute");
    if (get_name == nullptr || get_memory == nullptr || get_attribute == nullptr) count = 0;
    for (int i = 0; i < count; ++i) {
        constexpr int attribute_major = 75, attribute_minor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
        char name[256] = {};
        size_t bytes = 0;
        int major = 0, minor = 0;
        get_name(name, sizeof name - 1, i);
        get_memory(&bytes, i);
        get_attribute(&major, attribute_major, i);
        get_attribute(&minor, attribute_minor, i);
        gpu["devices"].push_back(
            {{"name", name}, {"memory_bytes", bytes}, {"compute_capability", cat(major, ".", minor)}});
    }
    Library nvml("libnvidia-ml.so.1");
    auto* nvml_init = nvml.function<int()>("nvmlInit_v2");
    auto* nvml_driver = nvml.function<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
    char driver[96] = {};
    if (nvml_init != nullptr && nvml_driver != nullptr && nvml_init() == 0) {
        if (nvml_driver(driver, sizeof driver) == 0) gpu["driver"] = driver;
        if (auto* nvml_shutdown = nvml.function<int()>("nvmlShutdown")) nvml_shutdown();
    }
    return gpu;
}

struct Wanted {
    const char* name;
    const char* use;
    std::vector<const char*> libraries;  ///< any one of these shared libraries will do
    const char* command;                 ///< or this program on the PATH; null for none
    const char* how_to_get;
    enum { with_gpu, optional } needed;
};

const std::vector<Wanted>& wanted_list() {
    static const std::vector<Wanted> list = {
        {"Open MPI",
         "several CPU processes",
         {"libmpi.so.40", "libmpi.so.12"},
         "mpirun",
         "apt-get install libopenmpi-dev openmpi-bin",
         Wanted::optional},
        {"cuBLASLt",
         "matrix products on the GPU",
         {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so"},
         nullptr,
         "CUDA toolkit: https://developer.nvidia.com/cuda-downloads",
         Wanted::with_gpu},
        {"cuDNN",
         "attention on the GPU",
         {"libcudnn.so.9"},
         nullptr,
         "apt-get install libcudnn9-cuda-12 (from NVIDIA's repository)",
         Wanted::with_gpu},
        {"NCCL",
         "communication between GPUs",
         {"libnccl.so.2"},
         nullptr,
         "apt-get install libnccl2 (from NVIDIA's repository)",
         Wanted::with_gpu},
        {"CUPTI",
         "kernel times in bench step",
         {"libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
          "/usr/local/cuda/lib64/libcupti.so"},
         nullptr,
         "CUDA toolkit: https://developer.nvidia.com/cuda-downloads",
         Wanted::optional},
        {"nvcc",
         "building the CUDA backend",
         {},
         "nvcc",
         "CUDA toolkit: https://developer.nvidia.com/cuda-downloads",
         Wanted::with_gpu},
    };
    return list;
}

enum class Found { no, yes, broken };

/// Loaded in a process of its own: whatever a library does when it is loaded, and what it takes, ends there.
Found find_library(const char* name) {
    constexpr int loaded = 0, not_there = 3;
    const pid_t child = fork();
    if (child == 0) {
        const int nowhere = open("/dev/null", O_RDWR);
        for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, stream);
        alarm(30);
        _exit(Library(name).found() ? loaded : not_there);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) throw Error("cannot start a process");
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return code == loaded ? Found::yes : code == not_there ? Found::no : Found::broken;
}

Found find(const Wanted& w) {
    Found best = Found::no;
    for (const char* name : w.libraries) {
        const Found found = find_library(name);
        if (found == Found::yes) return found;
        if (found == Found::broken) best = found;
    }
    if (w.command == nullptr) return best;
    const bool runs = command_on_path(w.command) || access(cat("/usr/local/cuda/bin/", w.command).c_str(), X_OK) == 0;
    return runs ? Found::yes : best;
}

Json examine_libraries(bool has_gpu) {
    Json all = Json::array();
    for (const Wanted& w : wanted_list()) {
        const Found found = find(w);
        const bool needed = w.needed == Wanted::with_gpu && has_gpu;
        Json entry = {{"name", w.name}, {"use", w.use}, {"found", found == Found::yes}, {"needed_here", needed}};
        if (found == Found::broken) entry["problem"] = "it is there, but loading it ends the process";
        if (found != Found::yes) entry["how_to_get"] = w.how_to_get;
        all.push_back(entry);
    }
    const bool parquet = parquet_missing().empty();
    all.push_back({{"name", "Apache Arrow"}, {"use", "Parquet input"}, {"found", parquet}, {"needed_here", false}});
    if (!parquet) all.back()["how_to_get"] = "scripts/setup.sh --parquet, then scripts/build.sh";
    return all;
}

Json examine() {
    const BuildInfo& b = build_info();
    Json report;
    report["build"] = {{"version", b.version},       {"revision", b.revision}, {"compiler", b.compiler},
                       {"build_type", b.build_type}, {"flags", b.flags},       {"cuda", b.cuda}};
    report["cpu"] = examine_cpu();
    report["memory"] = examine_memory();
    report["disk"] = examine_disk();
    report["blas"] = examine_matrix_products();
    report["gpu"] = examine_gpus();
    const bool has_gpu = !report["gpu"]["devices"].empty();
    report["libraries"] = examine_libraries(has_gpu);
    Json advice = Json::array();
    if (!report["cpu"]["unused_features"].empty()) {
        advice.push_back("this binary leaves instructions of this processor unused: scripts/build.sh builds for it");
    }
    if (std::string(b.build_type) != "Release") advice.push_back("this is a debug build and slow: scripts/build.sh");
    if (has_gpu && !b.cuda) advice.push_back("this binary has no CUDA backend: the GPU stays idle");
    for (const Json& entry : report["libraries"]) {
        if (entry["found"] || !entry["needed_here"]) continue;
        advice.push_back(
            cat(entry["name"].get<std::string>(), " (", entry["use"].get<std::string>(), ") is ",
                entry.contains("problem") ? "broken: " : "missing: ", entry["how_to_get"].get<std::string>()));
    }
    report["advice"] = advice;
    return report;
}

std::string gibibytes(const Json& bytes) {
    if (!bytes.is_number()) return "unknown";
    char text[32];
    std::snprintf(text, sizeof text, "%.1f GiB", bytes.get<double>() / (1 << 30));
    return text;
}

std::string joined(const Json& words) {
    std::string text;
    for (const Json& w : words) {
        if (!text.empty()) text += ' ';
        text += w.get<std::string>();
    }
    return text.empty() ? "none known" : text;
}

void line(const char* label, const std::string& value) { std::printf("%-12s %s\n", label, value.c_str()); }

std::string text_or(const Json& value, const char* otherwise) {
    return value.is_string() ? value.get<std::string>() : otherwise;
}

void print_report(const Json& r) {
    line("teratron", version_line().substr(sizeof "teratron"));
    line("CPU", cat(r["cpu"]["model"].get<std::string>(), ", ", r["cpu"]["usable_processors"].get<int>(),
                    " usable processors"));
    line("  features", joined(r["cpu"]["features"]));
    line("  built for", joined(r["cpu"]["built_for"]));
    std::string memory =
        cat(gibibytes(r["memory"]["total_bytes"]), ", ", gibibytes(r["memory"]["available_bytes"]), " available");
    if (r["memory"]["container_limit_bytes"].get<int64_t>() > 0) {
        memory += ", limited to " + gibibytes(r["memory"]["container_limit_bytes"]);
    }
    line("memory", memory);
    line("disk", gibibytes(r["disk"]["free_bytes"]) + " free here");
    line("BLAS", cat(r["blas"]["library"].get<std::string>(), ", vectors ", r["blas"]["vectors"].get<std::string>(),
                     " (no library needed)"));
    const Json& gpu = r["gpu"];
    if (gpu.contains("problem")) {
        line("GPU", gpu["problem"].get<std::string>());
    } else {
        line("GPU", cat(gpu["devices"].size(), " found, driver ", text_or(gpu["driver"], "unknown"), ", CUDA ",
                        text_or(gpu["cuda_version"], "unknown")));
    }
    for (const Json& d : gpu["devices"]) {
        line("", cat(d["name"].get<std::string>(), ", ", gibibytes(d["memory_bytes"]), ", compute capability ",
                     d["compute_capability"].get<std::string>()));
    }
    for (const Json& entry : r["libraries"]) {
        const std::string state = entry["found"]              ? "found"
                                  : entry.contains("problem") ? entry["problem"].get<std::string>()
                                  : entry["needed_here"]      ? "missing"
                                                              : "not needed here";
        const std::string how = entry["found"] ? "" : "; " + entry["how_to_get"].get<std::string>();
        line(entry["name"].get<std::string>().c_str(), cat(state, " (", entry["use"].get<std::string>(), ")", how));
    }
    std::printf("\n");
    if (r["advice"].empty()) std::printf("Nothing is missing.\n");
    for (const Json& text : r["advice"]) std::printf("- %s\n", text.get<std::string>().c_str());
}

}  // namespace

int cmd_doctor(const CommandArgs& args) {
    bool as_json = false;
    for (const std::string& arg : args) {
        if (arg == "--help" || arg == "-h") {
            std::printf("%s", help_text);
            return 0;
        }
        if (arg != "--json") usage_error("doctor: unknown argument '", arg, "' (it takes only --json)");
        as_json = true;
    }
    const Json report = examine();
    if (as_json) {
        std::printf("%s\n", report.dump(2).c_str());
    } else {
        print_report(report);
    }
    return 0;
}

}  // namespace tera
