// The memory of a micro-batch: three arenas with the lifetimes a layer deals in (core/exec.h), on one device.
#pragma once

#include <cstddef>

#include "core/engine.h"

namespace tera {

class Workspace {
  public:
    /// On the CPU.
    explicit Workspace(ThreadPool& pool) : Workspace(cpu_engine(), pool) {}
    Workspace(const Engine& engine, ThreadPool& pool, Arena::Kind kind = Arena::Kind::real)
        : engine_(engine),
          pool_(pool),
          keep_(kind, engine.memory()),
          temp_(kind, engine.memory()),
          redo_(kind, engine.memory()) {}

    Ctx ctx() { return {exec(keep_), exec(temp_), exec(redo_)}; }
    const Engine& engine() const { return engine_; }
    ThreadPool& pool() const { return pool_; }
    Arena::Kind kind() const { return keep_.kind(); }

    /// Gives everything back; to be called when a micro-batch is done.
    void reset() {
        keep_.reset();
        temp_.reset();
        redo_.reset();
    }
    std::size_t used() const { return keep_.used() + temp_.used() + redo_.used(); }
    std::size_t peak() const { return keep_.peak() + temp_.peak() + redo_.peak(); }
    std::size_t kept_peak() const { return keep_.peak() + redo_.peak(); }
    std::size_t scratch_peak() const { return temp_.peak(); }
    std::size_t held() const { return keep_.held() + temp_.held() + redo_.held(); }
    /// Takes all the memory that a dry run found to be needed.
    void reserve_like(const Workspace& plan) {
        keep_.reserve(plan.keep_.peak());
        temp_.reserve(plan.temp_.peak());
        redo_.reserve(plan.redo_.peak());
    }

  private:
    static const Engine& cpu_engine() {
        static const Engine engine;
        return engine;
    }
    Exec exec(Arena& arena) const { return engine_.exec(arena, pool_); }

    const Engine& engine_;
    ThreadPool& pool_;
    Arena keep_, temp_, redo_;
};

}  // namespace tera
