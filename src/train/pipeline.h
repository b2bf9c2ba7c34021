// Pipeline: runs micro-batches through this rank's places of the pipeline (parallel/schedule.h says in which order),
// and hands the stream and its gradient on to the ranks before and after. With one place it is forward, backward,
// forward, backward ...
//
// A micro-batch between its forward and its backward has a slot of the workspace to itself. As many slots are used as
// micro-batches are in flight at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <vector>

#include "comm/mesh.h"
#include "core/recorder.h"
#include "model/decoder.h"
#include "parallel/schedule.h"
#include "train/batch_upload.h"
#include "train/timers.h"
#include "train/workspace.h"

namespace tera {

/// When what other stages send may come in during the step before the one that needs it.
struct ReceiveAhead {
    bool turns = false;  ///< where forwards and backwards take turns
    bool ends = false;   ///< before and behind
    bool any() const { return turns || ends; }
};

/// Hands out the next micro-batch; it stays valid until the next call.
using MicroBatchSource = std::function<const MicroBatch&()>;

class Pipeline {
  public:
    struct Parts {
        std::vector<Decoder*> chunks;  ///< this rank's, in order
        const Mesh& mesh;
        Workspace& workspace;
        BatchUpload& upload;
        Timers& timers;
        std::int64_t group = 0;  ///< PipelineShape::group
        /// Told of parameters in forward passes, and in the last backward pass of a step; may be null.
        ParamObserver* observer = nullptr;
        /// The last stage computes the gradient of the output matrix when a step's last backward is done: of at most so
        /// many micro-batches, 0 of all. Absent: in each forward pass.
        std::optional<std::int64_t> deferral = {};
        ReceiveAhead ahead = {};
        bool records = false;  ///< micro-batches of one rank alone are recorded (core/recorder.h) and played
    };
    explicit Pipeline(const Parts& parts);

    /// What is on its way to other stages at a time, at most.
    struct Messages {
        int on_their_way = 0;   ///< to one rank
        std::size_t bytes = 0;  ///< of each
        int neighbours = 0;     ///< ranks they go to, and others come from
        bool ahead = false;     ///< one from each is let in before it is needed
        std::size_t total() const;
    };
    /// In steps of so many micro-batches shaped like this.
    Messages messages(const MicroBatch& batch, std::int64_t micro_batches) const;
    /// Connects this stage with its neighbours, before anything runs (Comm::connect_mail).
    void connect(const Messages& messages) const;

    struct Work {
        MicroBatchSource next;  ///< called once for each micro-batch, on every rank
        std::int64_t micro_batches = 1;
        Tensor sums;  ///< to which the last place adds the losses (Decoder::Input)
        /// Derivative of the objective by Σ mask loss of a micro-batch. Called when it is drawn.
        std::function<double(const MicroBatch&)> grad_scale = {};
        /// After the forward pass of a micro-batch through the last place; may be empty.
        std::function<void(std::int64_t micro_batch, const MicroBatch&)> loss_known = {};
    };
    /// Forward and backward of all micro-batches: losses and gradients accumulate. The first time nothing is received
    /// ahead: libraries that meet a product or load a kernel may wait for all of the device, and a rank must not wait
    /// there for a message that another can only send when it goes on.
    void train(const Work& work);
    /// Losses only, dropout off.
    void evaluate(const Work& work);

    /// Adds up the sums of the ranks that have other samples, and lets every rank know.
    void share(const Exec& exec, Tensor sums) const;

    const Mesh& mesh() const { return parts_.mesh; }
    Workspace& workspace() const { return parts_.workspace; }

  private:
    /// A micro-batch that is drawn and still needed.
    struct Drawn {
        std::int64_t number = 0;
        MicroBatch batch;
        double grad_scale = 0;
        std::vector<std::int32_t> ints;  ///< what `batch` points into, where it must outlive the next draw
        std::vector<float> mask;
        std::vector<std::int64_t> sample;
    };
    /// A micro-batch between forward and backward of one place.
    struct Flight {
        bool used = false;
        std::int64_t micro_batch = 0;
        int chunk = 0;
        Decoder::Saved saved;
    };

    /// With several stages micro-batches must be held; with several context ranks only some positions are taken.
    bool copies_batches() const { return parts_.mesh.shape().pp > 1 || parts_.mesh.shape().cp > 1; }
    PipelineShape shape(std::int64_t micro_batches) const;
    Drawn& drawn(const Work& work, std::int64_t micro_batch);
    /// Copies what this rank needs of the batch.
    void take_part(Drawn& d) const;
    void release(std::int64_t micro_batch);
    /// next: of which what it needs may come in meanwhile; may be null.
    void forward(const Work& work, const PipelineStep& step, const PipelineStep* next);
    void backward(const Work& work, const PipelineStep& step, const PipelineStep* next);
    /// Both, of a rank that is alone: played if they are recorded.
    void forward_and_backward(const Work& work, const PipelineStep& forward_step, const PipelineStep& backward_step);
    void expect(const Exec& exec, const MicroBatch& batch, const PipelineStep* next) const;
    Decoder& chunk(const PipelineStep& step) const { return *parts_.chunks[static_cast<std::size_t>(step.chunk)]; }
    int neighbour(int distance) const;

    Parts parts_;
    std::list<Drawn> drawn_;
    std::int64_t next_ = 0;
    std::vector<Flight> flights_;  ///< by slot of the workspace
    std::optional<DeferredGrad> deferred_;
    bool trained_ = false;
    std::optional<Recorder> recorder_;
    std::vector<Param*> params_;  ///< of what is recorded
};

}  // namespace tera
