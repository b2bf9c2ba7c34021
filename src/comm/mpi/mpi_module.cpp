// teratron_mpi.so: frames as MPI messages. A frame is a message with its header and, if it carries bytes, messages of
// at most a gigabyte with those; MPI keeps the order between two ranks. Nothing moves while a rank computes, and nobody
// waits for a receiver: sends are completed whenever the rank receives, and at the end.
#include <mpi.h>
#include <sched.h>

#include <cstring>
#include <list>
#include <string>

#include "comm/mailbox.h"
#include "comm/mpi_world.h"
#include "core/error.h"

namespace tera {
namespace {

constexpr int header_tag = 1, data_tag = 2;
constexpr std::size_t most_bytes = std::size_t{1} << 30;

void check(int status, const char* what) {
    if (status == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(status, text, &length);
    throw Error(cat(what, ": ", std::string(text, static_cast<std::size_t>(length))));
}

/// Bytes that MPI has not finished sending.
struct Outgoing {
    std::unique_ptr<std::byte[]> bytes;
    std::vector<MPI_Request> requests;
};

class Mpi final : public MpiTransport {
  public:
    Mpi() {
        int thread_level = 0;
        check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &thread_level), "MPI_Init_thread");
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
        check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
        MPI_Comm machine;
        int here = 0;
        check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
              "MPI_Comm_split_type");
        MPI_Comm_size(machine, &here);
        MPI_Comm_free(&machine);
        one_machine_ = here == size_;
    }

    ~Mpi() override {
        if (abandoned_) return;  // MPI_Finalize would wait for ranks that are gone
        for (Outgoing& out : outgoing_)
            MPI_Waitall(static_cast<int>(out.requests.size()), out.requests.data(), MPI_STATUSES_IGNORE);
        MPI_Finalize();
    }

    int rank() const override { return rank_; }
    int size() const override { return size_; }
    bool one_machine() const override { return one_machine_; }
    void abandon() override { abandoned_ = true; }

    void broadcast(void* data, std::size_t bytes) override {
        check(MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Bcast");
    }

    void send(int to, const FrameHeader& header, const std::byte* data) override {
        Outgoing out{std::make_unique_for_overwrite<std::byte[]>(sizeof header + header.bytes), {}};
        std::memcpy(out.bytes.get(), &header, sizeof header);
        if (header.bytes > 0) std::memcpy(out.bytes.get() + sizeof header, data, header.bytes);
        post(out, out.bytes.get(), sizeof header, to, header_tag);
        for (std::size_t at = 0; at < header.bytes; at += most_bytes)
            post(out, out.bytes.get() + sizeof header + at, std::min(most_bytes, header.bytes - at), to, data_tag);
        outgoing_.push_back(std::move(out));
        count_sent(sizeof header + header.bytes);
        drop_sent();
    }

    Frame receive(int from, std::uint64_t group) override {
        for (std::int64_t idle = 0;; ++idle) {
            if (std::optional<Frame> frame = mailbox_.take(from, group)) return std::move(*frame);
            if (take_one())
                idle = 0;
            else if (idle > 200)
                sched_yield();  // ranks may share a core
            if (idle % 64 == 0) drop_sent();
        }
    }

  private:
    static void post(Outgoing& out, const std::byte* data, std::size_t bytes, int to, int tag) {
        out.requests.emplace_back();
        check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, MPI_COMM_WORLD, &out.requests.back()),
              "MPI_Isend");
    }

    void drop_sent() {
        outgoing_.remove_if([](Outgoing& out) {
            int done = 0;
            check(MPI_Testall(static_cast<int>(out.requests.size()), out.requests.data(), &done, MPI_STATUSES_IGNORE),
                  "MPI_Testall");
            return done != 0;
        });
    }

    /// Takes in one frame, whoever it is from; false if none has come.
    bool take_one() {
        int there = 0;
        MPI_Message message;
        MPI_Status status;
        check(MPI_Improbe(MPI_ANY_SOURCE, header_tag, MPI_COMM_WORLD, &there, &message, &status), "MPI_Improbe");
        if (there == 0) return false;
        Frame frame;
        const int from = status.MPI_SOURCE;
        check(MPI_Mrecv(&frame.header, sizeof frame.header, MPI_BYTE, &message, &status), "MPI_Mrecv");
        const std::size_t bytes = frame.header.bytes;
        if (bytes > 0) frame.data = std::make_unique_for_overwrite<std::byte[]>(bytes);
        for (std::size_t at = 0; at < bytes; at += most_bytes)
            check(MPI_Recv(frame.data.get() + at, static_cast<int>(std::min(most_bytes, bytes - at)), MPI_BYTE, from,
                           data_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                  "MPI_Recv");
        count_come(sizeof frame.header + bytes);
        mailbox_.put(from, std::move(frame));
        return true;
    }

    int rank_ = 0, size_ = 1;
    bool one_machine_ = false, abandoned_ = false;
    Mailbox mailbox_;
    std::list<Outgoing> outgoing_;
};

}  // namespace
}  // namespace tera

extern "C" tera::MpiTransport* teratron_open_mpi_2() { return new tera::Mpi; }
