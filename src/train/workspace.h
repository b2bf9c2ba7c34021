// The memory of micro-batches: three arenas with the lifetimes a layer deals in (core/exec.h), on one device. In a
// pipeline several micro-batches wait for their backward at the same time: each has a slot, with what it keeps.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/engine.h"

namespace tera {

class Workspace {
  public:
    /// On the CPU.
    explicit Workspace(ThreadPool& pool) : Workspace(cpu_engine(), pool) {}
    Workspace(const Engine& engine, ThreadPool& pool, Arena::Kind kind = Arena::Kind::real)
        : engine_(engine),
          pool_(pool),
          temp_(kind, engine.memory()),
          redo_(kind, engine.memory()),
          later_(kind, engine.memory()) {
        add_slots(1);
    }

    Ctx ctx(std::size_t slot = 0) {
        add_slots(slot + 1);
        return {exec(*keep_[slot]), exec(temp_), exec(redo_)};
    }
    /// What lives beyond its micro-batch, until reset_later().
    Exec later() { return exec(later_); }
    void reset_later() { later_.reset(); }
    const Engine& engine() const { return engine_; }
    ThreadPool& pool() const { return pool_; }
    Arena::Kind kind() const { return temp_.kind(); }

    /// Gives back what the slot keeps, and all that is short-lived; to be called when its micro-batch is done.
    void reset(std::size_t slot = 0) {
        keep_[slot]->reset();
        temp_.reset();
        redo_.reset();
    }
    std::size_t used() const { return sum_kept(&Arena::used) + temp_.used() + redo_.used() + later_.used(); }
    std::size_t peak() const { return kept_peak() + temp_.peak(); }
    std::size_t kept_peak() const { return sum_kept(&Arena::peak) + redo_.peak() + later_.peak(); }
    std::size_t scratch_peak() const { return temp_.peak(); }
    /// What is taken from the device for the peaks.
    std::size_t block_bytes() const {
        std::size_t sum =
            Arena::block_bytes(temp_.peak()) + Arena::block_bytes(redo_.peak()) + Arena::block_bytes(later_.peak());
        for (const auto& arena : keep_) sum += Arena::block_bytes(arena->peak());
        return sum;
    }
    std::size_t held() const { return sum_kept(&Arena::held) + temp_.held() + redo_.held() + later_.held(); }
    /// Takes all the memory that a dry run found to be needed.
    void reserve_like(const Workspace& plan) {
        add_slots(plan.keep_.size());
        for (std::size_t i = 0; i < plan.keep_.size(); ++i) keep_[i]->reserve(plan.keep_[i]->peak());
        temp_.reserve(plan.temp_.peak());
        redo_.reserve(plan.redo_.peak());
        later_.reserve(plan.later_.peak());
    }

  private:
    static const Engine& cpu_engine() {
        static const Engine engine;
        return engine;
    }
    Exec exec(Arena& arena) const { return engine_.exec(arena, pool_); }
    void add_slots(std::size_t count) {
        while (keep_.size() < count) keep_.push_back(std::make_unique<Arena>(temp_.kind(), engine_.memory()));
    }
    std::size_t sum_kept(std::size_t (Arena::*bytes)() const) const {
        std::size_t sum = 0;
        for (const auto& arena : keep_) sum += (*arena.*bytes)();
        return sum;
    }

    const Engine& engine_;
    ThreadPool& pool_;
    Arena temp_, redo_, later_;
    std::vector<std::unique_ptr<Arena>> keep_;  ///< by slot
};

}  // namespace tera
