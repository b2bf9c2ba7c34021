// TCP sockets, as little of them as ranks need.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "core/error.h"

namespace tera {

using Clock = std::chrono::steady_clock;

class Socket {
  public:
    Socket() = default;
    explicit Socket(int fd) : fd_(fd) {}
    Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Socket();

    int fd() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    void close() { Socket(std::move(*this)); }
    int release() { return std::exchange(fd_, -1); }

    /// What was written or read, 0 if it would have to wait, -1 if the other side is gone.
    std::ptrdiff_t write_some(const void* data, std::size_t bytes) const;
    std::ptrdiff_t read_some(void* data, std::size_t bytes) const;
    /// All of it, waiting for the other side until the deadline; false if it is gone or too slow.
    bool write_all(const void* data, std::size_t bytes, Clock::time_point deadline) const;
    bool read_all(void* data, std::size_t bytes, Clock::time_point deadline) const;
    /// The other side's address as text.
    std::string peer_address() const;

  private:
    int fd_ = -1;
};

/// Thrown by whatever makes a socket.
class TooManyFiles : public UsageError {
  public:
    /// `ranks`: of the run, if known.
    explicit TooManyFiles(std::size_t ranks = 0);
};
/// As many open files as this process may have: ranks that send much to each other have two connections each.
void raise_limit_of_files();

/// A socket that does not block, listening on all interfaces; port 0 takes any free one, and is set. UsageError if the
/// port is taken.
Socket listen_on(int& port);
/// One that another program has made and left open for this one; empty if that is none which listens on this port.
Socket left_listening(int fd, int port);
/// Of a listening socket: empty if nobody has come.
Socket accept_from(const Socket& listener);
/// Tries until the deadline; empty if nobody answered, or the name is not known: `problem` says which. The socket does
/// not block.
Socket connect_to(const std::string& address, int port, Clock::time_point deadline, std::string* problem = nullptr);

/// Waits until a socket can be read (or written); false at the deadline.
bool wait_for(const Socket& socket, bool to_write, Clock::time_point deadline);

}  // namespace tera
