#include "comm/tcp.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

namespace tera {
namespace {

int milliseconds_until(Clock::time_point deadline) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 1000000));
}

void set_option(int fd, int level, int option) {
    const int on = 1;
    (void)setsockopt(fd, level, option, &on, sizeof on);
}

bool would_wait(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

rlimit limit_of_files() {
    rlimit limit{};
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    return limit;
}

std::string what_to_raise(std::size_t ranks) {
    constexpr std::size_t per_rank = 3, others = 100;
    const std::string found = cat("too many open files: ulimit -n is ", limit_of_files().rlim_cur);
    return ranks == 0 ? cat(found, "; raise it")
                      : cat(found, ", and ", ranks, " ranks need up to ", per_rank * ranks + others, "; raise it");
}

/// A system call has failed.
void look_for_files(int error) {
    if (error == EMFILE || error == ENFILE) throw TooManyFiles();
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// Empty if there is none, or none yet: names of machines that are still starting come later.
Addresses look_up(const std::string& host, int port, std::string& problem) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (error == EAI_SYSTEM) look_for_files(errno);
    problem = error == 0 ? cat("nobody answers at ", host, ":", port)
                         : cat("the host ", host, " is not known here (", gai_strerror(error), ")");
    return {error == 0 ? found : nullptr, &freeaddrinfo};
}

Socket connect_once(const addrinfo& to, Clock::time_point deadline) {
    Socket s(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!s) {
        look_for_files(errno);
        return {};
    }
    set_option(s.fd(), IPPROTO_TCP, TCP_NODELAY);
    set_option(s.fd(), SOL_SOCKET, SO_KEEPALIVE);
    if (::connect(s.fd(), to.ai_addr, to.ai_addrlen) != 0) {
        if (errno != EINPROGRESS) return {};
        if (!wait_for(s, true, std::min(deadline, Clock::now() + std::chrono::seconds(5)))) return {};
        int error = 0;
        socklen_t size = sizeof error;
        if (getsockopt(s.fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return {};
    }
    return s;
}

}  // namespace

TooManyFiles::TooManyFiles(std::size_t ranks) : UsageError(what_to_raise(ranks)) {}

void raise_limit_of_files() {
    rlimit limit = limit_of_files();
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

Socket::~Socket() {
    if (fd_ >= 0) ::close(fd_);
}

std::ptrdiff_t Socket::write_some(const void* data, std::size_t bytes) const {
    const auto n = ::send(fd_, data, bytes, MSG_NOSIGNAL);
    return n >= 0 ? n : would_wait(errno) ? 0 : -1;
}

std::ptrdiff_t Socket::read_some(void* data, std::size_t bytes) const {
    const auto n = ::recv(fd_, data, bytes, 0);
    if (n > 0) return n;
    return n < 0 && would_wait(errno) ? 0 : -1;
}

bool Socket::write_all(const void* data, std::size_t bytes, Clock::time_point deadline) const {
    for (const auto* at = static_cast<const std::byte*>(data); bytes > 0;) {
        const auto n = write_some(at, bytes);
        if (n < 0 || (n == 0 && !wait_for(*this, true, deadline))) return false;
        at += n;
        bytes -= static_cast<std::size_t>(n);
    }
    return true;
}

bool Socket::read_all(void* data, std::size_t bytes, Clock::time_point deadline) const {
    for (auto* at = static_cast<std::byte*>(data); bytes > 0;) {
        const auto n = read_some(at, bytes);
        if (n < 0 || (n == 0 && !wait_for(*this, false, deadline))) return false;
        at += n;
        bytes -= static_cast<std::size_t>(n);
    }
    return true;
}

std::string Socket::peer_address() const {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    char text[INET6_ADDRSTRLEN + 32] = {};
    if (getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
        getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
        return "";
    const std::string mapped = "::ffff:";  // IPv4 seen through a socket of IPv6
    return std::strncmp(text, mapped.c_str(), mapped.size()) == 0 ? text + mapped.size() : text;
}

namespace {

int port_of(const sockaddr_storage& address) {
    return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                               : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

Socket left_listening(int fd, int port) {
    sockaddr_storage address{};
    socklen_t size = sizeof address, length = sizeof(int);
    int listens = 0;
    if (fd < 0 || getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 || port_of(address) != port ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0)
        return {};
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    return Socket(fd);
}

Socket listen_on(int& port) {
    Socket s(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_storage address{};
    socklen_t size = 0;
    if (s) {
        const int off = 0;
        (void)setsockopt(s.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        auto& a = reinterpret_cast<sockaddr_in6&>(address);
        a.sin6_family = AF_INET6;
        a.sin6_addr = in6addr_any;
        a.sin6_port = htons(static_cast<std::uint16_t>(port));
        size = sizeof a;
    } else {  // a machine without IPv6
        look_for_files(errno);
        s = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        auto& a = reinterpret_cast<sockaddr_in&>(address);
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_ANY);
        a.sin_port = htons(static_cast<std::uint16_t>(port));
        size = sizeof a;
    }
    set_option(s.fd(), SOL_SOCKET, SO_REUSEADDR);
    if (::bind(s.fd(), reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(s.fd(), 4096) != 0)
        usage_error("cannot listen on port ", port, ": ", std::strerror(errno),
                    "; if this rank is not started twice, choose another with MASTER_PORT on all ranks");
    socklen_t found = sizeof address;
    getsockname(s.fd(), reinterpret_cast<sockaddr*>(&address), &found);
    port = port_of(address);
    return s;
}

Socket accept_from(const Socket& listener) {
    Socket s(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (s) {
        set_option(s.fd(), IPPROTO_TCP, TCP_NODELAY);
        set_option(s.fd(), SOL_SOCKET, SO_KEEPALIVE);
    } else if (const int error = errno;
               wait_for(listener, false, Clock::now())) {  // the error comes first, caller or not
        look_for_files(error);
    }
    return s;
}

Socket connect_to(const std::string& address, int port, Clock::time_point deadline, std::string* problem) {
    auto pause = std::chrono::milliseconds(10);
    std::string unasked;
    for (;;) {
        const Addresses found = look_up(address, port, problem != nullptr ? *problem : unasked);
        for (const addrinfo* a = found.get(); a != nullptr; a = a->ai_next) {
            if (Socket s = connect_once(*a, deadline)) return s;
        }
        if (Clock::now() + pause > deadline) return {};
        std::this_thread::sleep_for(pause);
        pause = std::min(pause * 2, std::chrono::milliseconds(500));
    }
}

bool wait_for(const Socket& socket, bool to_write, Clock::time_point deadline) {
    pollfd p{socket.fd(), static_cast<short>(to_write ? POLLOUT : POLLIN), 0};
    for (;;) {
        const int n = ::poll(&p, 1, milliseconds_until(deadline));
        if (n > 0) return true;
        if (n < 0 && errno == EINTR) continue;
        if (Clock::now() >= deadline) return false;
    }
}

}  // namespace tera
