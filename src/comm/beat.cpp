#include "comm/beat.h"

namespace tera {
namespace {

void put_calls(Packet& p, const DeviceCalls& calls) {
    p.put(static_cast<std::int64_t>(calls.key));
    for (const std::int64_t n : {std::int64_t{calls.members}, calls.given, calls.begun, calls.ended, calls.ahead})
        p.put(n);
    p.put(calls.call);
    p.put(static_cast<std::uint32_t>(calls.marks.size()));
    for (const CallMark& mark : calls.marks) {
        p.put(mark.number);
        p.put(static_cast<std::int64_t>(mark.digest));
    }
}

DeviceCalls get_calls(Packet& p) {
    DeviceCalls calls;
    calls.key = static_cast<std::uint64_t>(p.get<std::int64_t>());
    calls.members = static_cast<int>(p.get<std::int64_t>());
    for (std::int64_t* n : {&calls.given, &calls.begun, &calls.ended, &calls.ahead}) *n = p.get<std::int64_t>();
    calls.call = p.get_text();
    for (auto left = p.get<std::uint32_t>(); left > 0; --left) {
        const auto number = p.get<std::int64_t>();
        calls.marks.push_back({number, static_cast<std::uint64_t>(p.get<std::int64_t>())});
    }
    return calls;
}

}  // namespace

Packet beat_packet(const Progress::State& s) {
    Packet p(Packet::Kind::beat);
    p.put(s.step);
    p.put(s.calls);
    p.put(s.call);
    p.put(std::int64_t{s.waiting});
    p.put(static_cast<std::int64_t>(s.seconds * 1000));
    p.put(std::int64_t{s.waits_for});
    for (const std::int64_t n : {s.waits, s.sent, s.come, std::int64_t{s.finished}}) p.put(n);
    p.put(static_cast<std::uint32_t>(s.device.size()));
    for (const DeviceCalls& calls : s.device) put_calls(p, calls);
    return p;
}

Progress::State read_beat(Packet& p) {
    Progress::State s;
    s.step = p.get<std::int64_t>();
    s.calls = p.get<std::int64_t>();
    s.call = p.get_text();
    s.waiting = p.get<std::int64_t>() != 0;
    s.seconds = static_cast<double>(p.get<std::int64_t>()) / 1000;
    s.waits_for = static_cast<int>(p.get<std::int64_t>());
    for (std::int64_t* n : {&s.waits, &s.sent, &s.come}) *n = p.get<std::int64_t>();
    s.finished = p.get<std::int64_t>() != 0;
    for (auto left = p.get<std::uint32_t>(); left > 0; --left) s.device.push_back(get_calls(p));
    return s;
}

}  // namespace tera
