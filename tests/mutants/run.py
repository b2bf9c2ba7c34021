#!/usr/bin/env python3
"""Breaks the code on purpose, one line at a time, and checks that a test notices.

    python3 tests/mutants/run.py [--build DIR] [--only WORD] [--list]

Every mutant is a text replacement in one file of a copy of the tree (the tree itself is not touched): a sign, a missing
term, a dropped step. Its test program is rebuilt and must fail. A mutant that survives, or whose text is no longer in
the file, fails the run.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# (file, text, replacement, test program, filter)
MUTANTS = [
    ("src/ops/norm_cpu.cpp", "rstd * (g - sum - xhat * dot)", "rstd * (g - sum + xhat * dot)", "test_ops", "*NormGradient*"),
    ("src/ops/norm_cpu.cpp", "rstd * (g - sum - xhat * dot)", "rstd * (g - xhat * dot)", "test_ops", "*NormGradient*"),
    ("src/ops/norm_cpu.cpp", "dw[i] += d * xhat;", "dw[i] = d * xhat;", "test_ops", "*NormGradient*"),
    ("src/ops/rope_cpu.cpp", "A sign = inverse ? A(-1) : A(1);", "A sign = A(1); (void)inverse;", "test_ops", "*RopeGradient*"),
    ("src/ops/rope_cpu.cpp", "T(b * c[i] + a * sn)", "T(b * c[i] - a * sn)", "test_ops", "*RopeGradient*"),
    ("src/ops/attention_cpu.cpp", "row[j] * (drow[j] - delta) * scale", "row[j] * drow[j] * scale", "test_ops", "*AttentionGradient*"),
    ("src/ops/attention_cpu.cpp", "row[j] * (drow[j] - delta) * scale", "row[j] * (drow[j] - delta)", "test_ops", "*AttentionGradient*"),
    ("src/ops/attention_cpu.cpp", "task.drop(drow + lo, h, q0 + i, k0 + lo, k0 + hi);", "", "test_ops", "*AttentionGradient*"),
    ("src/ops/attention_cpu.cpp", "if (!spec.doc_start) return 0;", "if (q >= 0) return 0;", "test_ops", "*attention*"),
    ("src/ops/attention_cpu.cpp", "std::int64_t h = task.g * task.heads_per_group() + r;", "std::int64_t h = r * task.spec.G + task.g;", "test_ops", "*attention*"),
    ("src/ops/attention_dropout.h", ">> (key % 2 * 16) & 0xffffu", "& 0xffffu", "test_ops", "AttentionDropout*"),
    ("src/ops/attention_dropout.h", "query % 16 / 8 * 2 + key", "query % 16 / 8 * 0 + key", "test_ops", "AttentionDropout*"),
    ("src/ops/activation_cpu.cpp", "s * (A(1) + x * (A(1) - s))", "s * (A(1) + x)", "test_ops", "*ActivationGradient*"),
    ("src/ops/activation_cpu.cpp", "(A(1) + A(3 * 0.044715) * x * x)", "(A(1) + A(0.044715) * x * x)", "test_ops", "*ActivationGradient*"),
    ("src/ops/cross_entropy_cpu.cpp", "z[label] -= weight;", "z[label] += weight;", "test_ops", "*cross_entropy*"),
    ("src/ops/embedding_cpu.cpp", "row[i] += A(d[t * D + i]);", "row[i] = A(d[t * D + i]);", "test_ops", "*embedding*"),
    ("src/ops/linear.cpp", "dw.cols(), before == Before::sum}", "dw.cols(), before != Before::sum}", "test_ops", "*linear*"),
    ("src/nn/param.cpp", "if (!exec.counts()) weight.grad_is_old = false;", "", "test_optim", "Optimizer.A*"),
    ("src/nn/param.cpp", "fill.skip = s.begin;", "", "test_model", "InitParams*"),
    ("src/optim/optimizer.cpp", "s.param->grad_is_old = s.param->grad_by_product;", "s.param->grad_is_old = false;", "test_optim", "Optimizer.A*"),
    ("src/optim/optimizer.cpp", "if (!is_main(s)) init_slice(s, main.tensor, exec, seed);", "", "test_optim", "Optimizer.Main*"),
    ("src/optim/optimizer.cpp", "backend_->keep_rest(exec, main.part(begin, count), drawn);", "(void)drawn;", "test_optim", "Optimizer.Main*"),
    ("src/optim/optimizer.cpp", "main.part(begin, count), drawn", "main.part(0, count), drawn", "test_optim", "Optimizer.Main*"),
    ("src/optim/main_weights.h", "(bits + 0x8000u) >> 16", "bits >> 16", "test_optim", "MainWeights*"),
    ("src/optim/main_weights.h", " || bits >> 31 != std::uint32_t{value} >> 15", "", "test_optim", "MainWeights*"),
    ("src/optim/main_weights.h", "rest < -32768 ? -32768 : rest > 32767 ? 32767 : rest", "rest", "test_optim", "MainWeights*"),
    ("src/optim/optimizer_cpu.cpp", "halves.set(i, put_together[i]);", "(void)i;", "test_optim", "MainWeights*"),
    ("src/optim/measure.cpp", "halves.get(k)", "1.0f + static_cast<float>(k) * 0", "test_optim", "Optimizer.Norm*"),
    ("src/train/host_rows.h", "copy_from_host(exec_, target_.rest, rest.data());", "", "test_train", "CheckpointsOnRanks.distributed*"),
    ("src/train/host_rows.h", "static_cast<std::int16_t>(lower[i])", "static_cast<std::int16_t>(lower[0])", "test_train", "TrainerResume*"),
    ("src/train/checkpoint_tensors.cpp", "if (from == DType::f32 && to == DType::bf16) {", "if (from == DType::f64 && to == DType::bf16) {", "test_train", "Checkpoint.*"),
    ("src/train/checkpoint_load.cpp", "at > 0 ? Tensor(padding.slice(at - 1, 1)) : last", "last", "test_train", "Checkpoint.*"),
    ("src/optim/optimizer.cu", "store_few(static_cast<std::uint16_t*>(rest) + i, lower);", "", "test_cuda_soft", "*CudaOptimizer*"),
    ("src/optim/optimizer.cu", "static_cast<std::uint16_t>(rest_beside(value[i], numbers[i]))", "0", "test_cuda_soft", "CudaOptimizerMore*"),
    ("src/optim/measure.cu", "static_cast<std::int16_t>(rest[i])", "0", "test_cuda_soft", "CudaOptimizerMore*"),
    ("src/comm/neighbour.cpp", "state.letter == 'T' && ", "", "test_comm", "Neighbour*"),
    ("src/comm/neighbour.cpp", " && state.born == process.born", "", "test_comm", "Neighbour*"),
    ("src/comm/watch.cpp", "        say_why(why);\n        end_stopped_neighbours();", "        say_why(why);", "test_cli", "*SlowRankFailure.stopped/script"),
    ("src/nn/mlp.cpp", "add_product_grad(e, down_.weight, dy, saved.a); }", "add_product_grad(e, down_.weight, dy, da); }", "test_model", "Decoder.keeping*"),
    ("src/ops/residual_cpu.cpp", "dropout.sample[row % dropout.B]", "dropout.sample[0]", "test_ops", "*dropout*"),
    ("src/nn/attention.cpp", "return linear_from_stream_backward(e, tp_, qkv_, dqkv, saved.x, qkv_.bias_grad());", "return linear_from_stream_backward(e, tp_, qkv_, dqkv, saved.x);", "test_model", "*DecoderGradient*"),
    ("src/nn/attention.cpp", "if (in.rope) ops::rope(e, dqkv", "if (false) ops::rope(e, dqkv", "test_model", "*DecoderGradient*"),
    ("src/nn/block.cpp", "if (dropout.p == 0) return {dy, bias->grad};", "if (dropout.p == 0) return {dy, {}};", "test_model", "*DecoderGradient*"),
    ("src/nn/embedding.cpp", "if (position) ops::embedding_backward", "if (false) ops::embedding_backward", "test_model", "*DecoderGradient*"),
    ("src/nn/lm_head.cpp", "add_product_grad(e, weight, dz, x.slice(t, n));", "(void)weight;", "test_model", "*DecoderGradient*"),
    ("src/model/decoder.cpp", "final_norm_->backward(ctx.temp, dx, saved.head.dx, saved.final_norm);", "", "test_model", "*DecoderGradient*"),
    # One collective left out.
    ("src/nn/tp_region.cpp", "comm_->all_gather(exec, x, whole);", "", "test_parity", "Parity*"),
    ("src/nn/tp_region.cpp", "comm_->all_reduce(exec, x, Reduce::sum);", "", "test_parity", "Parity*"),
    ("src/nn/tp_region.cpp", "comm_->reduce_scatter(exec, x, mine);", "", "test_parity", "Parity*"),
    ("src/nn/lm_head.cpp", "tp_.all_reduce(exec, stats.top, Reduce::max);", "", "test_parity", "Parity*"),
    ("src/nn/lm_head.cpp", "tp_.all_reduce(exec, stats.sums, Reduce::sum);", "", "test_parity", "Parity*"),
    ("src/nn/lm_head.cpp", "saved.dx = tp_.enter_backward(ctx.keep, dx);", "saved.dx = dx;", "test_parity", "Parity*"),
    ("src/nn/lm_head.cpp", "ConstTensor x = tp_.enter(lasting, x_stream);", "ConstTensor x = x_stream;", "test_parity", "Parity*"),
    ("src/nn/lm_head.cpp", "ConstTensor x = tp_.enter(ctx.temp, x_stream);", "ConstTensor x = x_stream;", "test_parity", "Parity*"),
    ("src/nn/linear_params.h", "return tp.enter_backward(lane, dx); });", "(void)lane; return dx; });", "test_parity", "Parity*"),
    ("src/nn/tp_region.cpp", "if (size() > 1) comm_->all_reduce(exec, data, op);", "(void)exec, (void)data, (void)op;", "test_parity", "Parity*"),
    ("src/train/pipeline.cpp", "mesh.pp_back().expect(exec, model.dtype(), model.stream_shape(batch), neighbour(1));", ";", "test_parity", "ReceiveAhead*"),
    ("src/train/trainer_setup.cpp", "if (!leads()) mesh_->world().barrier();", "", "test_train", "TrainerOnRanks*"),
    ("src/train/trainer_setup.cpp", "if (leads()) mesh_->world().barrier();", "", "test_train", "TrainerOnRanks*"),
    ("src/train/checkpoint_ranks.cpp", "world_.recv(exec_, tensor_over(head, {2}), r);", "", "test_train", "TrainerOnRanks*"),
    ("src/train/checkpoint_ranks.cpp", "world_.send(exec_, tensor_over(head, {2}), 0);", "", "test_train", "TrainerOnRanks*"),
    ("src/train/checkpoint_ranks.cpp", "world_.recv(exec_, runs, r);", "", "test_train", "TrainerOnRanks*"),
    ("src/train/checkpoint_ranks.cpp", "world_.send(exec_, tensor_over(runs.data(), {head[0], 2}), 0);", "", "test_train", "TrainerOnRanks*"),
    ("src/train/pipeline.cpp", "next = trained_ && ahead", "next = ahead", "test_parity", "ReceiveAhead*"),
    ("src/train/pipeline.cpp", "expect(exec, model.dtype(), model.stream_shape(batch), neighbour(-1));", "expect(exec, model.dtype(), model.stream_shape(batch), neighbour(1));", "test_parity", "Parity*"),
    ("src/train/pipeline.cpp", "turns.has(i + 1) ? parts_.ahead.turns : parts_.ahead.ends", "turns.has(i + 1) ? parts_.ahead.ends : parts_.ahead.turns", "test_parity", "ReceiveAhead*"),
    ("src/train/pipeline.cpp", "expect(ctx.temp, d.batch, next);\n        {", "(void)next;\n        {", "test_parity", "ReceiveAhead*"),
    ("src/train/training_parts.cpp", "{c.overlap_p2p_comm, c.overlap_p2p_comm_warmup_flush}", "{c.overlap_p2p_comm_warmup_flush, c.overlap_p2p_comm}", "test_parity", "Verify.what_overlaps*"),
    ("src/nn/deferred_grad.cpp", "add_product_grad(exec, weight, p.dy, p.x);", "(void)exec, (void)weight, (void)p;", "test_parity", "Parity*"),
    ("src/nn/linear_params.h", "return tp.enter(lane, x_stream); });", "(void)lane; return x_stream; });", "test_parity", "Parity*"),
    ("src/nn/cp_region.cpp", "comm_->shift(road_->lane.on(exec), in, out);", "(void)in, (void)out;", "test_nn", "*RingAttention*"),
    ("src/nn/ring_attention.cpp", "if (i + 1 < cp_.size()) cp_.pass_on(e, Cargo::block, here, kv.in_turn(i + 1));\n        const ArenaScope turn_scope(*e.arena);\n        const Turn t = turn(i);\n        const ConstTensor q", "const ArenaScope turn_scope(*e.arena);\n        const Turn t = turn(i);\n        const ConstTensor q", "test_nn", "*RingAttention*"),
    ("src/nn/ring_attention.cpp", "if (i + 1 < cp_.size()) cp_.pass_on(e, Cargo::block, here, kv.in_turn(i + 1));\n        const ArenaScope turn_scope(*e.arena);\n        const Turn t = turn(i);\n        const std::int64_t", "const ArenaScope turn_scope(*e.arena);\n        const Turn t = turn(i);\n        const std::int64_t", "test_nn", "*RingAttention*"),
    ("src/nn/ring_attention.cpp", "cp_.pass_on(e, Cargo::gradients, gradients, dkv.in_turn(i + 1));", "", "test_nn", "*RingAttention*"),
    ("src/nn/ring_attention.cpp", "ops::merge_attention(e, sum, part, t.first_query);", "", "test_nn", "*RingAttention*"),
    ("src/nn/ring_attention.cpp", "ops::merge_attention(e, sum, part, t.first_query);", "ops::merge_attention(e, sum, part, 0);", "test_nn", "*RingAttention*"),
    ("src/nn/ring_attention.cpp", "ops::add_to(e, dq.slice(first, rows), part_q);", "", "test_nn", "*RingAttention*"),
    ("src/nn/ring_attention.cpp", "ops::add_to(e, gradients.slice(0, part_kv.rows()), part_kv);", "", "test_nn", "*RingAttention*"),
    ("src/nn/ring_attention.cpp", "t.spec.whole.key = zigzag_piece(own_.Sk, from, cp_.size());", "", "test_nn", "*RingAttention*"),
    ("src/ops/attention_cpu.cpp", "weight = std::exp(other - top), sum", "weight = std::exp(other), sum", "test_ops", "AttentionBlocks*"),
    ("src/nn/cp_region.cpp", "comm_->all_gather(exec, local, by_rank);", "", "test_parity", "Parity*"),
    ("src/nn/cp_region.cpp", "comm_->reduce_scatter(exec, by_rank, local);", "", "test_parity", "Parity*"),
    ("src/parallel/grad_sync.cpp", "mesh_.tp().all_reduce(exec, all, Reduce::sum);", "", "test_parity", "Parity*"),
    ("src/parallel/grad_sync.cpp", "mesh_.tp().all_reduce(exec, whole, Reduce::sum);", "", "test_parity", "Parity*"),
    ("src/parallel/grad_sync.cpp", "mesh_.embedding()->all_reduce(exec, p->grad, Reduce::sum);", "continue;", "test_parity", "Parity*"),
    ("src/parallel/grad_sync.cpp", "group().reduce_scatter(where, b.grads, piece_of(b.grads));", "return;", "test_parity", "Parity*"),
    ("src/parallel/grad_sync.cpp", "group().all_reduce(where, b.grads, Reduce::sum);", "return;", "test_parity", "Parity*"),
    ("src/parallel/grad_sync.cpp", "group().all_gather(where, piece_of(buffers_[i].values), buffers_[i].values);", "(void)where;", "test_parity", "Parity*"),
    ("src/parallel/grad_sync.cpp", "ops::fill_zero(exec, buffers_[i].grads);", "", "test_parity", "Parity*"),
    ("src/train/train_step.cpp", "parts_.sync.updated(exec, group);", "if (group > 0) parts_.sync.updated(exec, group);", "test_parity", "Parity.a_buffer*"),
    ("src/parallel/grad_sync.cpp", "if (gathered_with_.empty() || (settings_.gather_in_update && gathers()))", "if (gathered_with_.empty())", "test_parallel", "GradSync*"),
    ("src/parallel/grad_sync.cpp", "groups_.of.push_back(progress_[buffer_of_.at(p)].group);", "groups_.of.push_back(groups_.count - 1 - progress_[buffer_of_.at(p)].group);", "test_parity", "Parity.a_buffer*"),
    ("src/train/training_parts.cpp", ".gather_in_update = config.overlap_param_gather_with_optimizer_step,", "", "test_train", "TrainingParts*"),
    ("src/optim/optimizer.cpp", "group < tensors_.groups.count; ++group", "group < 1; ++group", "test_optim", "Optimizer.Groups*"),
    ("src/optim/optimizer.cpp", "if (updated) updated(group);", "if (updated && group == 0) updated(group);", "test_parity", "Parity.a_buffer*"),
    ("src/optim/pieces.cpp", "return group_of(a) < group_of(b);", "return a.tensor < b.tensor && group_of(a) < 0;", "test_optim", "Optimizer.Groups*"),
    ("src/optim/optimizer.cpp", "agreement_->all_reduce(exec, sums, Reduce::sum);", "(void)sums;", "test_parity", "Parity*"),
    ("src/train/pipeline.cpp", "parts_.mesh.over({Axis::dp, Axis::cp}).all_reduce(exec, sums, Reduce::sum);", "", "test_parity", "Parity*"),
    ("src/train/pipeline.cpp", "parts_.mesh.pp().broadcast(exec, sums, parts_.mesh.shape().pp - 1);", "", "test_parity", "Parity*"),
    ("src/train/train_step.cpp", "dp.all_reduce(parts_.pipeline.workspace().ctx().temp, tensor_over(&x, {1}), Reduce::sum);", "", "test_parity", "Parity*"),
    # One message between stages, or of a checkpoint, left out: nobody can go on, or another one is read.
    ("src/train/pipeline.cpp", "parts_.mesh.pp().recv(memory, input.x, neighbour(-1));\n    }\n    expect", "}\n    expect", "test_parity", "Parity*"),
    ("src/train/pipeline.cpp", "parts_.mesh.pp().send(ctx.keep, out, neighbour(1));\n    else", "(void)out;\n    else", "test_parity", "Parity*"),
    ("src/train/pipeline.cpp", "if (!model.slice().head) parts_.mesh.pp_back().recv(ctx.temp, dx, neighbour(1));", "", "test_parity", "Parity*"),
    ("src/train/pipeline.cpp", "if (!model.slice().embedding) parts_.mesh.pp_back().send(ctx.temp, dx, neighbour(-1));", "", "test_parity", "Parity*"),
    ("src/train/pipeline.cpp", "parts_.mesh.pp().recv(ctx.keep, input.x, neighbour(-1));\n        }\n        const Tensor out", "}\n        const Tensor out", "test_parity", "Parity*"),
    ("src/train/pipeline.cpp", "if (!model.slice().head) parts_.mesh.pp().send(ctx.keep, out, neighbour(1));", "(void)out;", "test_parity", "Parity*"),
    ("src/train/trainer.cpp", "sync.norm_group().all_reduce(exec, tensor_over(&squares, {1}), Reduce::sum);", "(void)sync;", "test_train", "TrainerOnRanks*"),
    ("src/train/trainer.cpp", "mesh_->world().all_reduce(workspace_.ctx().temp, tensor_over(all, {4}), Reduce::max);", "", "test_train", "TrainerOnRanks*"),
    ("src/train/checkpoint_ranks.cpp", "world_.recv(exec_, data, r);", "", "test_train", "CheckpointsOnRanks*"),
    ("src/train/checkpoint_ranks.cpp", "world_.send(exec_, data, 0);", "", "test_train", "CheckpointsOnRanks*"),
    ("src/comm/comm.cpp", "note(2.0 * ", "note(1.0 * ", "test_comm", "*counted*"),
    # Ranks that wait for each other, and ranks that only take long.
    ("src/comm/device_calls.cpp", "if (other->digest != mark.digest) {", "if (false) {", "test_comm", "DeviceCalls.*"),
    ("src/comm/device_calls.cpp", "marks_[k] = {CallMark{given_, digest_}, marks_[k][0]};", "marks_[k] = {CallMark{given_, digest_}, CallMark{}};", "test_comm", "DeviceCalls.*"),
    ("src/comm/device_calls.cpp", "without_end += !all_came;", "without_end += all_came ? 1 : 1;", "test_comm", "HeldUp.*"),
    ("src/comm/device_calls.cpp", "held[r] = open > 0 && without_end == open;", "held[r] = without_end > 0;", "test_comm", "HeldUp.*"),
    ("src/comm/device_calls.cpp", "std::max<std::int64_t>(calls.begun - calls.ahead, 0)", "std::max<std::int64_t>(calls.begun, 0)", "test_comm", "HeldUp.*"),
    ("src/comm/standstill.cpp", "if (device_is_held_up) return true;", "if (device_is_held_up) return false;", "test_comm", "StandstillOfDevices.*"),
    ("src/comm/standstill.cpp", "if (calls.given > calls.ended) return false;", "if (calls.given < calls.ended) return false;", "test_comm", "StandstillOfDevices.*"),
    ("src/comm/beat.cpp", "for (const DeviceCalls& calls : s.device) put_calls(p, calls);", "for (DeviceCalls calls : s.device) calls.marks.clear(), put_calls(p, calls);", "test_comm", "Watch.*device*"),
    ("src/nn/param.cpp", "b.params[i]->grad_is_old = b.params[i]->grad_by_product;", "", "test_model", "AllocateParams.*"),
    ("src/comm/standstill.cpp", "if (!idle(s, held[r])) return false;", "(void)idle;", "test_comm", "Standstill*"),
    ("src/comm/standstill.cpp", "if (finished == 0 && on_the_way != 0) return false;", "", "test_comm", "Standstill*"),
    ("src/comm/standstill.cpp", "if (finished == static_cast<std::int64_t>(ranks.size())) return false;", "", "test_comm", "Standstill*"),
    ("src/comm/standstill.cpp", "since_ = now;", "", "test_comm", "Standstill*"),
    ("src/comm/standstill.cpp", "a.waits == b.waits && ", "", "test_comm", "Standstill*"),
    ("src/comm/watch.cpp", "if (standstill_.found(states, Clock::now()))", "if (false)", "test_comm", "Watch.ranks_that*"),
    ("src/comm/beat.cpp", "s.waits_for = static_cast<int>(p.get<std::int64_t>());", "(void)p.get<std::int64_t>();", "test_comm", "Watch.ranks_that*"),
    ("src/comm/socket_transport.cpp", "count_sent(parcel.size);", "", "test_comm", "Watch.ranks_that*"),
    ("src/comm/mpi/mpi_module.cpp", "count_come(sizeof frame.header + bytes);", "", "test_comm", "SlowMpi*"),
    ("src/comm/process_world.cpp", "watch_->progress().finish();", "", "test_comm", "SlowMpi*"),
    ("src/comm/thread_comm.cpp", "if (!waiting[r] || waiting[r]->ready()) return;", "if (!waiting[r]) return;", "test_comm", "ThreadStandstill*"),
    ("src/comm/thread_comm.cpp", "        wake_all();\n        look_for_standstill();", "        wake_all();", "test_comm", "ThreadStandstill*"),
    ("src/comm/thread_comm.cpp", "n > 0 ? cat(\" (their group \", n + 1, \")\") : \"\"", "n > 1 ? \"\" : \"\"", "test_comm", "ThreadStandstill*"),
    ("src/comm/thread_comm.cpp", "in.dtype == o.in.dtype && ", "", "test_comm", "CollectivesOutOfStep*"),
    # Whoever waits for others says so.
    ("src/comm/meeting.cpp", "if (notices.due()) tell_who_is_missing(notices.since(), missing);", "", "test_comm", "Meeting*"),
    ("src/comm/meeting.cpp", "if (line.socket) (void)line.send(news_packet(text));", "(void)line;", "test_comm", "Meeting*"),
    ("src/comm/meeting.cpp", "next_ = Clock::now() + seconds(6 * patience_s_);", "", "test_comm", "Meeting*"),
    ("src/comm/process_world.cpp", "const StartOfMpi start(place_, settings);", "", "test_comm", "SlowMpi*"),
    ("src/comm/rendezvous.cpp", "return ranks && ranks != number(variables, \"SLURM_STEP_NUM_TASKS\");", "return ranks.has_value();", "test_comm", "Rendezvous*"),
    ("src/comm/rendezvous.cpp", "if (names.launcher == Launcher::slurm && mpirun_within_slurm(variables)) continue;", "(void)mpirun_within_slurm;", "test_comm", "Rendezvous*"),
    ("src/cli/rank_process.cpp", "tell(\"rank\", \"RANK\", std::to_string(config.rank));", "", "test_cli", "ParallelTraining.ranks_by*"),
    ("src/cli/rank_process.cpp", "if (place.size > 1 && given(\"world_size\") && config.world_size != place.size)", "if (false)", "test_cli", "ParallelTraining.flags_that*"),
    ("src/train/trainer_setup.cpp", "if (padded != config_.padded_vocab_size)", "if (padded < 0)", "test_train", "TrainerResume.AnotherPadding*"),
    # Reduced before all is there, or with another rank's part.
    ("src/train/pipeline.cpp", "const bool last = step.micro_batch == work.micro_batches - 1;", "const bool last = step.micro_batch == 0;", "test_parity", "Parity.overlapped*"),
    ("src/model/decoder.cpp", "tell_of_gradients(observer, blocks_[static_cast<std::size_t>(begin)]);", "if (begin > 0) tell_of_gradients(observer, blocks_[static_cast<std::size_t>(begin - 1)]);", "test_parity", "Parity.overlapped*"),
    ("src/parallel/schedule.cpp", "if (needs) --waiting_[channel(mine)];", "waiting_[channel(mine)] = 0;", "test_parallel", "Schedule*"),
    # One axis of sum_grad_over left out, or an element counted twice.
    ("src/nn/block.cpp", '".attention.norm"), ranks.tp.stream_axes()', '".attention.norm"), AxisSet{Axis::dp, Axis::cp}', "test_parity", "Parity*"),
    ("src/nn/block.cpp", '".mlp.norm"), ranks.tp.stream_axes()', '".mlp.norm"), AxisSet{Axis::dp, Axis::cp}', "test_parity", "Parity*"),
    ("src/model/decoder.cpp", '"final_norm", tp_.stream_axes()', '"final_norm", AxisSet{Axis::dp, Axis::cp}', "test_parity", "Parity*"),
    ("src/nn/linear_params.h", "AxisSet{Axis::dp, Axis::cp} : tp.stream_axes()", "AxisSet{Axis::dp, Axis::cp} : (void(tp), AxisSet{Axis::dp, Axis::cp})", "test_parity", "Parity*"),
    ("src/nn/embedding.cpp", ".sum_grad_over = tp.stream_axes(),", ".sum_grad_over = {Axis::dp, Axis::cp},", "test_parity", "Parity*"),
    ("src/nn/attention.cpp", "AxisSet axes{Axis::dp, Axis::cp, Axis::tp};", "AxisSet axes{Axis::dp, Axis::cp};", "test_parity", "Parity*"),
    ("src/nn/embedding.cpp", ".sum_grad_over = {Axis::dp, Axis::cp},", ".sum_grad_over = {Axis::dp},", "test_parity", "Parity*"),
    ("src/nn/linear_params.h", ".sum_grad_over = {Axis::dp, Axis::cp},", ".sum_grad_over = {Axis::cp},", "test_parity", "Parity*"),
    ("src/nn/lm_head.cpp", ".sum_grad_over = {Axis::dp, Axis::cp},", ".sum_grad_over = {Axis::dp},", "test_parity", "Parity*"),
    ("src/parallel/grad_sync.cpp", "if (piece.copy != 0) continue;", "", "test_parity", "Parity*"),
    ("src/parallel/grad_sync.cpp", "if (p.tp.rank != 0) return {};", "", "test_parity", "Parity*"),
    ("src/parallel/grad_sync.cpp", "if (p.tie == Param::Tie::copy) return {};", "", "test_parity", "Parity*"),
    # Ranks that were started otherwise, and what a user would lose.
    ("src/train/agreement.cpp", "world.broadcast(exec, tensor_over(first.data(), {length}), 0);", "(void)length;", "test_train", "Agreement*"),
    ("src/train/agreement.cpp", "world.all_reduce(exec, tensor_over(&worst, {1}), Reduce::max);", "(void)exec;", "test_train", "Agreement*:TrainerOnRanks.other*"),
    ("src/train/checkpoint_ranks.cpp", "world_.broadcast(exec_, Tensor(reinterpret_cast<std::byte*>(&request), DType::u8, Device::cpu, {sizeof request}),\n                     0);", "(void)request;", "test_train", "CheckpointsOnRanks*"),
    ("src/train/timers.cpp", "world.all_reduce(exec, tensor_over(all.data(), {static_cast<std::int64_t>(all.size())}), Reduce::sum);", "(void)exec;", "test_train", "*Timer*:TrainerOnRanks*"),
    ("src/comm/watch.cpp", "place_.rank != 0 && place_.local_rank != 0 && !server_lost_", "place_.rank != 0 && !server_lost_", "test_cli", "SlowMachines*"),
    ("src/cli/main.cpp", "    tera::fill_closed_descriptors();\n", "    if (argc < 0) tera::fill_closed_descriptors();\n", "test_cli", "Main.Closed*"),
    ("src/train/trainer_setup.cpp", "if (config_.exit_signal_handler)  // one", "if (false)  // one", "test_train", "TrainerControl.Signal*"),
    ("src/train/agreement.cpp", "if (worst == 0) return;", "if (worst >= 0) return;", "test_train", "Agreement*"),
    ("src/train/agreement.cpp", "if (in(places, field.dest))", "if (in(places, field.dest) || value.is_string())", "test_train", "Agreement*"),
    ("src/train/agreement.cpp", "python_real(source.weight)", "0", "test_train", "Agreement*"),
    ("src/comm/meeting.cpp", "return Gathering(place, settings, meeting).gather(why);", "return;", "test_cli", "*rank_0_that_fails*"),
    ("src/comm/meeting.cpp", "if (!comes) return note_failure(rank, *hello), stranger.socket.close();", "", "test_cli", "*fails_before*"),
    ("src/train/trainer_setup.cpp", "agree(facts_of(data_->datasets()));", "(void)facts_of;", "test_train", "TrainerOnRanks.what_one*"),
    ("src/train/trainer_setup.cpp", "agree(flags_to_share(config_));", "", "test_train", "TrainerOnRanks.what_one*"),
    ("src/train/trainer_setup.cpp", "if (there < wanted &&", "if (there < 0 &&", "test_train", "TrainerResume.Data*"),
    ("src/train/metrics.cpp", "if (iteration == 0 && kept.dropped > 0) {", "if (iteration < 0) {", "test_train", "Metrics*"),
    ("src/train/metrics.cpp", "if (!whole && (!in.eof() || number == 1))", "if (number < 0)", "test_train", "Metrics*"),
    ("src/data/preprocess_journal.cpp", "if (same && (entry.progress.invalid == 0 || options_.skip_invalid)) return entry;", "if (same || options_.workers > 0) return entry;", "test_data", "Stopped*"),
    ("src/data/preprocess_journal.cpp", "if (same && (entry.progress.invalid == 0 || options_.skip_invalid)) return entry;", "if (same) return entry;", "test_data", "Stopped*"),
    ("src/data/preprocess_journal.cpp", "options_.partitions > 1 && options_.keep_sequential_samples", "false", "test_data", "Stopped*"),
    ("src/data/preprocess.cpp", "writer.keep_unfinished();\n        usage_error", "usage_error", "test_data", "Stopped*"),
    ("src/data/preprocess.cpp", "if (journal.is_kept() && options.partitions > 1) noted.now(true);", "", "test_data", "Stopped*"),
    ("src/data/preprocess_block.cpp", "if (!rows.lines.empty()) out.bad.back().line = rows.lines[row];", "", "test_data", "Inputs*"),
    ("src/cli/cmd_preprocess.cpp", "std::size_t i = static_cast<std::size_t>(task); i < files.size()", "std::size_t i = 0; i < files.size()", "test_cli", "PreprocessTasks*"),
    ("src/cli/main.cpp", "    explain_lost_pages();\n", "", "test_cli", "BadInput.TokenFileCut*"),
    ("src/io/lost_pages.cpp", "while (said.test_and_set()) ::pause();", "said.test_and_set();", "test_io", "LostPages.*"),
    ("src/io/lost_pages.cpp", "address >= take_hex(rest)", "address > take_hex(rest)", "test_io", "LostPages.*"),
    ("src/token/gpt2_bpe.cpp", "if (2 * lost >= merges.pairs.size()) usage_error", "if (lost > merges.pairs.size()) usage_error", "test_cli", "BadInput.Tokenizer*"),
    # A batch of later days.
    ("src/train/trainer_setup.cpp", "check_batches(config_);", "", "test_cli", "ParallelTraining.a_batch*"),
    # Samples that ranks share.
    ("src/data/sampler.cpp", "numbers.consumed[static_cast<std::size_t>(b)] = before + c_.data_parallel_rank + b * step_;", "(void)before;", "test_data", "CyclicSampler*"),
    ("src/train/data_feed.cpp", "sampler.data_sharding = data_sharding_;", "sampler.data_sharding = data_sharding_ || workers_ >= 0;", "test_train", "TrainerOnRanks.shuffled*"),
    # Parts of what layers are recomputed from.
    ("src/nn/tp_region.cpp", "comm_->all_gather(exec, part, whole.reshape({whole.numel()}));", "(void)part;", "test_parity", "Parity.kept*"),
    ("src/nn/tp_region.cpp", "slice(n * rank(), n)", "slice(0, n)", "test_parity", "Parity.kept*"),
    ("src/model/decoder.cpp", "x = copy_to(ctx.temp, x);  // it", "// it", "test_parity", "Parity.kept*"),
    # What verify runs.
    ("src/train/verify.cpp", "return asked - (asked - most + group - 1) / group * group;", "return most;", "test_parity", "Verify*"),
    ("src/train/verify.cpp", "c.kv_heads = tp * few(c.kv_heads / tp);", "c.kv_heads = tp;", "test_parity", "Verify*"),
    # What a search for layouts says.
    ("src/train/layout_search.cpp", "return a.tokens_per_second_per_gpu > b.tokens_per_second_per_gpu;", "return a.seconds < b.seconds;", "test_parity", "LayoutSearch*"),
    ("src/train/layout_search.cpp", "number->reset();", "(void)number;", "test_parity", "LayoutSearch*"),
    ("src/train/layout_search.cpp", "check_batches(choice.config);", "", "test_parity", "LayoutSearch*"),
    ("src/train/layout_search.cpp", "if (idle > least - 1e-9) continue;", "if (idle > least - 1e-9 || least > -1) continue;", "test_parity", "LayoutSearch*"),
    ("src/train/agreement.cpp", "hash.add({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof ids[0]});", "", "test_train", "Agreement*"),
    ("src/launch/local.cpp", "child.stopped = WIFSTOPPED(status);", "", "test_launch", "*stopped*"),
    ("src/train/trainer_setup.cpp", '{"the checkpoint found", where ? checkpoint_fingerprint(*where) : "none"}', '{"the checkpoint found", "some"}', "test_train", "TrainerOnRanks.other_weights*"),
    ("src/train/checkpoint_find.cpp", "crc = crc32c(sum(crc, cat(name, \" \", found.entry->bytes)), bytes);", "crc = sum(crc, cat(name, \" \", found.entry->bytes));", "test_train", "TrainerOnRanks.other_weights*"),
    ("src/train/trainer_setup.cpp", "cat(tokenizer_->eod())", "cat(0)", "test_train", "TrainerOnRanks.other_weights*"),
    ("src/train/trainer.cpp", "per_iteration = micro_batches * of_all_ranks;", "per_iteration = config_.global_batch_size;", "test_train", "TrainerOnRanks.validation*"),
    ("src/comm/meeting.cpp", "if (is_other_job(job)) {", "if (false) {", "test_comm", "Meeting*"),
    ("src/comm/rendezvous.cpp", "if (names.launcher == Launcher::variables) look", "if (false) look", "test_comm", "Rendezvous*"),
    ("src/launch/local.cpp", "if (!failed_) give_up_stopped();", "", "test_launch", "*stays_stopped*"),
    ("src/train/layout_plan.cpp", "if (some.total() == more.total()) return grown(some, more, groups);", "return grown(some, more, groups + 1);", "test_parity", "LayoutPlan*"),
    ("src/train/layout_search.cpp", "if (!within_node(tp)) continue;", "", "test_parity", "LayoutSearch*"),
    ("src/cli/cmd_verify.cpp", "require_agreement(world.comm(), {Device::cpu, &arena, &pool}, flags_to_share(config));", "", "test_cli", "*verify_compares*"),
    ("src/core/arena.cpp", "check_fences(mark.fences);", "", "test_core", "Arena*"),
    ("src/train/layout_search.cpp", 'if (!possible_) usage_error("no layout of "', 'if (N < 0) usage_error("no layout of "', "test_parity", "LayoutSearch*"),
    # Stages without layers.
    ("src/parallel/layer_plan.cpp", "if (stage[chunk].count == 0 && !embedding && !loss)", "if (stage[chunk].count == 0 && !embedding && !loss && chunks == 0)", "test_parallel", "LayerPlan*"),
    ("src/model/decoder.cpp", "return blocks_.empty() ? final_norm_->dtype() : blocks_[0].dtype();", "return DType::bf16;", "test_parity", "Parity.stages*"),
    # Dropout, weights or data that depend on the layout.
    ("src/model/decoder.cpp", "in.stream.offset = tp_.first_row(batch.S);", "", "test_parity", "Parity*"),
    ("src/model/decoder.cpp", "in.stream = batch.place;", "", "test_parity", "Parity*"),
    ("src/nn/attention.cpp", "spec.whole = {heads_ * tp_.rank(), {.first = run.begin}, {}, in.length};", "spec.whole = {0, {.first = run.begin}, {}, in.length};", "test_parity", "Parity*"),
    ("src/nn/attention.cpp", "spec.whole = {heads_ * tp_.rank(), {.first = run.begin}, {}, in.length};", "spec.whole = {heads_ * tp_.rank(), {}, {}, in.length};", "test_parity", "Parity*"),
    ("src/nn/param.cpp", "fill.first = begin + (piece.full_begin - piece.local_begin) * cols;", "fill.first = begin;", "test_model", "InitParams*"),
    ("src/nn/param.cpp", "fill.first = pieces[0].full_begin;", "fill.first = 0;", "test_model", "InitParams*"),
    ("src/parallel/schedule.cpp", "2 * behind + (s.chunks - 1) * group", "behind + (s.chunks - 1) * group", "test_parallel", "Schedule*"),
    # Kernels, on the GPU in software: what is not waited for, told, fenced or kept apart.
    # Work on two streams.
    ("src/ops/beside.cpp", "TERA_CUDA(cudaStreamWaitEvent(side.stream, side.begin, 0));", "", "test_cuda_soft", "*products_beside*/bf16"),
    ("src/ops/beside.cpp", "TERA_CUDA(cudaStreamWaitEvent(gpu.stream, side.end, 0));", "", "test_cuda_soft", "*products_beside*/bf16"),
    ("src/core/cuda/upload_slots.cpp", "TERA_CUDA(cudaStreamWaitEvent(parts_->copying, slot.used, 0));", "", "test_cuda_soft", "CudaUploadSlots*"),
    ("src/core/cuda/upload_slots.cpp", "TERA_CUDA(cudaStreamWaitEvent(parts_->gpu.stream, slot.copied, 0));", "", "test_cuda_soft", "CudaUploadSlots*"),
    ("src/ops/tiled_product.cuh", "                over_for_copies();\n", "", "test_cuda_soft", "Sizes/GatedProducts.backward/777*"),
    ("src/ops/attention_sm90.cuh", "over_for_copies(), release(memory.own_empty", "release(memory.own_empty", "test_cuda_soft", "*attention_of_warp_groups/bf16"),
    ("src/ops/attention_key_gradient_sm90.cu", "            over_for_copies();\n", "", "test_cuda_soft", "*attention_of_warp_groups/bf16"),
    ("src/ops/attention_key_gradient_sm90.cu", "            hopper::meet(1 + me.group, group_threads);\n", "", "test_cuda_soft", "*attention_of_warp_groups/bf16"),
    ("src/ops/attention_key_gradient_sm90.cu", "::tile(n, item.b, head, first)", "::tile(n, item.b, item.head, first)", "test_cuda_soft", "*attention_of_warp_groups/bf16"),
    ("src/ops/attention_query_sums_sm90.cuh", "return part * rows * width + (", "return (", "test_cuda_soft", "*attention_of_warp_groups/bf16"),
    ("src/ops/attention_cudnn.cpp", "{2, queries * s.K}", "{1, queries * s.K}", "test_train", "PlanOfAGpu*Library"),
    ("src/core/cuda/recordings.cpp", "if (left < least_left_) {", "if (left == 0) {", "test_cuda_soft", "CudaRecorder*"),
    ("src/config/validate.cpp", "if (c.enable_cuda_graph && !c.cuda_graph)", "if (false)", "test_config", "RunConfig*"),
    ("src/train/trainer_setup.cpp", "if (c.profile) return", "if (false) return", "test_train_soft", "TrainerOnGpu.WhatCannot*"),
    ("src/ops/row_ring.cuh", "        asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");  // the slot has been read\n", "", "test_cuda_soft", "*CudaOps.norms/bf16"),
    ("src/train/pipeline.cpp", "key.push_back(p->grad_is_old)", "key.push_back(p == nullptr)", "test_train_soft", "TrainerOnGpu.RecordedMicroBatches*"),
    ("src/train/pipeline.cpp", "p->grad_is_old = false;  // as after any backward pass", "p->grad_is_old = p->grad_is_old;", "test_train_soft", "TrainerOnGpu.RecordedMicroBatches*"),
    ("src/train/pipeline.cpp", "std::bit_cast<std::uint64_t>(d.grad_scale)", "std::bit_cast<std::uint64_t>(0.0 * d.grad_scale)", "test_train_soft", "TrainerOnGpu.RecordedMicroBatches*"),
    ("src/ops/document_list.cpp", "++list.count > most_documents(S, B)", "++list.count > S * B", "test_ops", "DocumentList*"),
    ("src/ops/document_list.cpp", "start != first", "start > first", "test_ops", "DocumentList*"),
    ("src/ops/attention_documents.cu", "there ? rows[2 * i] : tokens", "there ? rows[2 * i] : 0", "test_cuda_soft", "CudaDocuments*"),
    ("src/ops/tiled_product.cuh", "                stores_read<Op::lag>();\n", "", "test_cuda_soft", "Sizes/GatedProducts.backward/777*"),
    ("src/ops/tiled_product.cuh", "                    products_wait<1>();\n", "", "test_cuda_soft", "Sizes/GatedProducts.*/777*"),
    ("src/ops/tiled_product.cuh", "            products_wait<0>();\n", "", "test_cuda_soft", "Sizes/GatedProducts.*/777*"),
    ("src/ops/tiled_product.cuh", "                barrier_wait(of.ready(chunk), of.parity(chunk));\n", "", "test_cuda_soft", "Sizes/GatedProducts.backward/777*"),
    ("src/ops/tiled_product.cuh", "                    barrier_wait(empty + 8 * stage, parity);\n", "", "test_cuda_soft", "Sizes/GatedProducts.*/777*"),
    ("src/ops/tiled_product.cuh", "                barrier_wait(full + 8 * stage, parity);\n", "", "test_cuda_soft", "Sizes/GatedProducts.*/777*"),
    ("src/ops/tiled_product.cuh", "                barrier_wait(of.done(chunk), of.parity(chunk));\n", "", "test_cuda_soft", "Sizes/GatedProducts.*/777*"),
    ("src/ops/tiled_product.cuh", "    cluster_meet();  // nobody leaves", "    // nobody leaves", "test_cuda_soft", "Sizes/GatedProducts.*/777*:Sizes/GatedProducts.*/512*"),
    ("src/ops/tiled_product.cuh", "unsigned parity = 1;  // of a barrier", "unsigned parity = 0;  // of a barrier", "test_cuda_soft", "Sizes/GatedProducts.forward/777*"),
    ("src/ops/tiled_product.cuh", "(me.row() & 7)) * 16;", "(me.row() & 3)) * 16;", "test_cuda_soft", "Sizes/GatedProducts.backward/777*"),
    ("src/ops/gated_product_sm90.cu", "d[0] * ups.x * f0.slope", "d[0] * f0.slope", "test_cuda_soft", "Sizes/GatedProducts.backward/777*"),
    ("src/ops/gated_product_sm90.cu", "load_fragments(u[p], gate_at(2 * (first + p)) + part_bytes);", "load_fragments(u[p], gate_at(2 * (first + p)));", "test_cuda_soft", "Sizes/GatedProducts.backward/777*"),
    ("src/ops/plain_product_sm90.cu", "c[0][k] += d0;", "c[0][k] = d0;", "test_cuda_soft", "Gelu/PlainProducts.backward/*777*"),
    ("src/ops/plain_product_sm90.cu", "            meet(meeting, group_threads);\n", "", "test_cuda_soft", "Gelu/PlainProducts.backward/*777*"),
    ("src/ops/plain_product_sm90.cu", "column + 8 * b < args.width", "column + 8 * b <= args.width + 64", "test_cuda_soft", "Gelu/PlainProducts.forward/*777*"),
    ("src/ops/row_ring.cuh", '"@!there bra again;\\n"\n            "}" ::"r"(shared(arrived_', '"}" ::"r"(shared(arrived_', "test_cuda_soft", "Types/CudaOps.norms/bf16"),
    ("src/ops/norm_backward.cu", "    __syncthreads();\n    between();", "    between();", "test_cuda_soft", "Types/CudaOps.norms/bf16"),
    ("src/ops/attention_mma.cuh", "                __pipeline_wait_prior(0);\n            }\n            __syncthreads();\n            f(", "            }\n            __syncthreads();\n            f(", "test_cuda_soft", "Types/CudaOps.attention/bf16"),
    ("src/ops/attention_mma.cuh", "            __syncthreads();\n            f(keys(turn), values(turn), k0);", "            f(keys(turn), values(turn), k0);", "test_cuda_soft", "Types/CudaOps.attention/bf16"),
    ("src/ops/attention_mma.cuh", "range[1] = 0;\n    __syncthreads();", "range[1] = 0;", "test_cuda_soft", "Types/CudaOps.attention/bf16"),
    ("src/ops/index_sort.cu", "        __syncwarp();\n    }\n}", "    }\n}", "test_cuda_soft", "Types/CudaOps.embedding*/bf16"),
    ("src/ops/column_sum.cu", "shared[team][k][lane] = sum[k];\n    __syncthreads();", "shared[team][k][lane] = sum[k];", "test_cuda_soft", "Types/CudaOps.column_sums/f32"),
    ("src/ops/column_sum.cu", "if (team != 0 || col >= n) return;", "if (team != 0) return;", "test_cuda_soft", "Types/CudaOps.column_sums/f32"),
    ("src/ops/embedding.cu", "keys[i] = at >= 0 && at < n ?", "keys[i] = at >= 0 ?", "test_cuda_soft", "Types/CudaOps.embedding*/f32"),
    ("src/ops/activation.cu", "for (int half = 0; half < halves; ++half) {\n        __syncthreads();", "for (int half = 0; half < halves; ++half) {", "test_cuda_soft", "Types/CudaOps.activations/f32"),
]


patience = 120  # seconds; a healthy test program is done in a few


def run(command, **kwargs):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(ROOT / "build-mutants"), help="folder for the copy and its build")
    parser.add_argument("--only", default="", help="only mutants whose file or text contains this")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    chosen = [m for m in MUTANTS if options.only in m[0] or options.only in m[1]]
    if options.list:
        for file, text, to, program, test in chosen:
            print(f"{file}: {text!r} -> {to!r}  ({program} {test})")
        return 0

    base = pathlib.Path(options.build)
    tree, build = base / "tree", base / "build"
    tree.mkdir(parents=True, exist_ok=True)
    for part in ["CMakeLists.txt", "cmake", "src", "tests"]:
        source, target = ROOT / part, tree / part
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            # With new times: what an interrupted run has built from a mutant is older then, and built again.
            shutil.copytree(source, target, copy_function=shutil.copy)
        else:
            shutil.copy(source, target)
    cuda = ["-DTERA_CUDA=OFF"]
    if any(m[3].endswith("_soft") for m in chosen):  # these need nvcc
        cuda = ["-DTERA_CUDA=ON", "-DCMAKE_CUDA_ARCHITECTURES=90"]
    configured = run(["cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DTERA_BENCH=OFF", *cuda])
    if configured.returncode:
        print(configured.stdout)
        return 1
    programs = sorted({m[3] for m in chosen})
    path_of = {p: build / "tests" / ("soft_gpu" if p.endswith("_soft") else "") / p for p in programs}
    built = run(["ninja", "-C", build, *programs])
    if built.returncode:
        print(built.stdout)
        return 1
    for program in programs:
        tests = ":".join(sorted({m[4] for m in chosen if m[3] == program}))
        healthy = run([path_of[program], f"--gtest_filter={tests}"])
        if healthy.returncode:
            print(f"{program} fails without any mutant:\n{healthy.stdout}")
            return 1

    survivors = 0
    for file, text, to, program, test in chosen:
        path = tree / file
        original = path.read_text()
        if text not in original:
            print(f"STALE     {file}: {text!r} is not there any more")
            survivors += 1
            continue
        path.write_text(original.replace(text, to, 1))
        built = run(["ninja", "-C", build, program])
        if built.returncode:
            print(f"NO BUILD  {file}: {text!r} -> {to!r}\n{built.stdout[-2000:]}")
            survivors += 1
        else:
            try:
                result = run([path_of[program], f"--gtest_filter={test}", "--gtest_fail_fast"], timeout=patience)
                caught = result.returncode != 0
            except subprocess.TimeoutExpired:  # as ctest would end it
                caught = True
            survivors += not caught
            print(f"{'caught   ' if caught else 'SURVIVED '} {file}: {text!r} -> {to!r}", flush=True)
        path.write_text(original)
    print(f"{len(chosen) - survivors} passed, {survivors} failed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
