// A message of the watch: kind, then fields one after the other. Both ends are this program on machines of one kind;
// the first message carries a magic number that says so.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "core/error.h"

namespace tera {

class Packet {
  public:
    enum class Kind : std::uint32_t { hello, news, table, beat, failure, bye, cannot_come };

    explicit Packet(Kind kind) { put(static_cast<std::uint32_t>(kind)); }

    Kind kind() const { return kind_; }
    void put(std::int64_t value) { append(&value, sizeof value); }
    void put(std::uint32_t value) { append(&value, sizeof value); }
    void put(const std::string& text) {
        put(static_cast<std::uint32_t>(text.size()));
        append(text.data(), text.size());
    }
    template <class T>
    T get() {
        T value{};
        take(&value, sizeof value);
        return value;
    }
    std::string get_text() {
        std::string text(std::min<std::size_t>(get<std::uint32_t>(), bytes_.size() - at_), 0);
        take(text.data(), text.size());
        return text;
    }

    /// With its length before it.
    std::string framed() const {
        const auto size = static_cast<std::uint32_t>(bytes_.size());
        return std::string(reinterpret_cast<const char*>(&size), sizeof size) + bytes_;
    }
    /// Takes the first whole packet off what was received; nothing if it has not all come yet. Error for bytes that no
    /// packet begins with.
    static std::optional<Packet> take_first(std::string& received) {
        std::uint32_t size = 0;
        if (received.size() < sizeof size) return {};
        std::memcpy(&size, received.data(), sizeof size);
        if (size < sizeof(std::uint32_t) || size > most_bytes)
            throw Error("what came is not from a rank of this program");
        if (received.size() < sizeof size + size) return {};
        Packet p;
        p.bytes_ = received.substr(sizeof size, size);
        received.erase(0, sizeof size + size);
        p.kind_ = static_cast<Kind>(p.get<std::uint32_t>());
        return p;
    }

  private:
    static constexpr std::uint32_t most_bytes = 64u << 20;

    Packet() = default;
    void append(const void* data, std::size_t bytes) { bytes_.append(static_cast<const char*>(data), bytes); }
    void take(void* to, std::size_t bytes) {
        if (bytes_.size() - at_ < bytes) throw Error("a packet between ranks is too short");
        std::memcpy(to, bytes_.data() + at_, bytes);
        at_ += bytes;
    }

    std::string bytes_;
    std::size_t at_ = 0;
    Kind kind_{};
};

}  // namespace tera
