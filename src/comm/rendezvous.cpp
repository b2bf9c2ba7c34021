#include "comm/rendezvous.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "core/error.h"

namespace tera {
namespace {

struct Names {
    Launcher launcher;
    const char *rank, *size, *local_rank;
};

constexpr std::array<Names, 4> launchers{
    {{Launcher::variables, "RANK", "WORLD_SIZE", "LOCAL_RANK"},
     {Launcher::open_mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
     {Launcher::slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
     {Launcher::mpich, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"}}};

std::optional<std::uint64_t> long_number(const Variables& variables, const char* name) {
    const char* const text = variables(name);
    if (text == nullptr || *text == 0) return {};
    std::uint64_t value = 0;
    const char* const end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, value);
    if (error != std::errc{} || stop != end)
        usage_error("the variable ", name, "=", text, " is not a number; the launcher must set it to one");
    return value;
}

std::optional<int> number(const Variables& variables, const char* name) {
    const std::optional<std::uint64_t> value = long_number(variables, name);
    if (!value) return {};
    if (*value > std::numeric_limits<int>::max())
        usage_error("the variable ", name, "=", *value, " is more than any launcher sets it to");
    return static_cast<int>(*value);
}

/// Steps have numbers of 32 bits, the highest of them for what is no srun of the user's.
int port_of_job(const Variables& variables) {
    const std::uint64_t job = long_number(variables, "SLURM_JOB_ID").value_or(0),
                        step = long_number(variables, "SLURM_STEP_ID").value_or(0);
    return static_cast<int>(20000 + (job * 6151 + step * 97) % 19997);  // neighbours in both are far from each other
}

std::string job_of(const Variables& variables, Launcher launcher) {
    const auto value = [&](const char* name) {
        const char* text = variables(name);
        return std::string(text == nullptr ? "" : text);
    };
    if (const std::string job = value("TERATRON_JOB"); !job.empty()) return job;
    if (const std::string run = value("TORCHELASTIC_RUN_ID"); !run.empty() && run != "none") return "torchrun " + run;
    if (launcher != Launcher::slurm) return "";
    return cat("Slurm ", value("SLURM_JOB_ID"), ".", value("SLURM_STEP_ID"));
}

/// RANK and WORLD_SIZE left over from something else would make every process of mpirun a run of its own.
void look_for_other_ranks(const Variables& variables, const RankPlace& place) {
    for (const Names& names : launchers) {
        if (names.launcher != Launcher::open_mpi && names.launcher != Launcher::mpich) continue;
        if (const auto started = number(variables, names.size); started && *started > place.size)
            usage_error("WORLD_SIZE is ", place.size, ", but mpirun started ", *started,
                        " ranks; unset RANK and WORLD_SIZE, or for runs apart from each other ", names.size);
    }
}

/// An mpirun within a job of Slurm, whose helpers srun has started.
bool mpirun_within_slurm(const Variables& variables) {
    const std::optional<int> ranks = number(variables, "PMI_SIZE");
    return ranks && ranks != number(variables, "SLURM_STEP_NUM_TASKS");
}

/// "[::1]", as an address stands in front of a port, is "::1".
std::string without_brackets(const std::string& address) {
    const bool has = address.size() > 2 && address.front() == '[' && address.back() == ']';
    return has ? address.substr(1, address.size() - 2) : address;
}

/// torchrun listens at MASTER_PORT itself, for a store that ranks of PyTorch share; rank 0 needs one of its own, which
/// all ranks can name.
int port_beside_torchrun(int port) { return port <= 64535 ? port + 1000 : port - 1000; }

void find_meeting_point(const Variables& variables, RankPlace& place) {
    if (const char* address = variables("MASTER_ADDR")) place.address = without_brackets(address);
    place.port = number(variables, "MASTER_PORT").value_or(0);
    if (place.launcher == Launcher::slurm) {
        if (place.address.empty()) {
            const char* hosts = variables("SLURM_STEP_NODELIST");
            if (hosts != nullptr) place.address = first_host(hosts);
        }
        if (place.port == 0) place.port = port_of_job(variables);
    }
    const bool told = place.launcher == Launcher::open_mpi || place.launcher == Launcher::mpich;
    if (place.size == 1 || (told && place.address.empty())) return;
    if (place.address.empty())
        usage_error("there are ", place.size,
                    " ranks, and MASTER_ADDR does not say where rank 0 is; set it, or --master-addr, to its host");
    if (place.port == 0 || place.port > 65535)
        usage_error("there are ", place.size, " ranks, and MASTER_PORT is ", place.port == 0 ? "not set" : "no port",
                    "; set it, or --master-port, to a free port of rank 0's host, such as 6000");
    const char* store = variables("TORCHELASTIC_USE_AGENT_STORE");
    if (place.launcher == Launcher::variables && store != nullptr && std::string_view(store) == "True")
        place.port = port_beside_torchrun(place.port);
}

}  // namespace

RankPlace find_rank_place(const Variables& variables) {
    const int claimed = number(variables, "WORLD_SIZE").value_or(1);  // batch scripts set it beside srun too
    for (const Names& names : launchers) {
        const std::optional<int> rank = number(variables, names.rank), size = number(variables, names.size);
        if (!rank || !size) continue;
        if (names.launcher == Launcher::slurm && mpirun_within_slurm(variables)) continue;
        if (names.launcher != Launcher::variables && claimed > 1 && claimed != *size)
            usage_error("WORLD_SIZE is ", claimed, ", but ", names.size, " is ", *size,
                        "; unset WORLD_SIZE, or set RANK too and start as many processes");
        RankPlace place{*rank,
                        *size,
                        number(variables, names.local_rank).value_or(0),
                        names.launcher,
                        {},
                        0,
                        *rank == 0 ? number(variables, "TERATRON_LISTENER").value_or(-1) : -1,
                        job_of(variables, names.launcher)};
        if (place.rank >= place.size)
            usage_error(names.rank, "=", place.rank, " is not below ", names.size, "=", place.size);
        if (names.launcher == Launcher::variables) look_for_other_ranks(variables, place);
        find_meeting_point(variables, place);
        return place;
    }
    if (claimed > 1) usage_error("WORLD_SIZE is ", claimed, " and RANK is not set; set RANK to this process's number");
    if (const std::optional<int> rank = number(variables, "RANK"))
        usage_error("RANK is ", *rank, " and WORLD_SIZE is not set; set WORLD_SIZE to the number of processes");
    return {};
}

RankPlace find_rank_place() {
    return find_rank_place([](const char* name) { return std::getenv(name); });
}

std::string first_host(const std::string& list) {
    const auto bracket = list.find('['), comma = list.find(',');
    if (bracket == list.npos || comma < bracket) return list.substr(0, comma);
    const auto end = list.find_first_of("-,]", bracket), close = list.find(']', bracket);
    if (end == list.npos || close == list.npos) usage_error("SLURM_STEP_NODELIST is no list of hosts: ", list);
    const auto next = list.find(',', close);
    return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1) +
           list.substr(close + 1, next == list.npos ? list.npos : next - close - 1);
}

std::string host_name() {
    char host[256] = {};
    return gethostname(host, sizeof host - 1) == 0 ? host : "unknown host";
}

}  // namespace tera
