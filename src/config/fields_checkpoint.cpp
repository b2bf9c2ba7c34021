// The flag list: checkpoints.
#include "config/fields.h"

namespace tera {

void add_checkpoint_fields(FieldList& list) {
    using C = RunConfig;
    list.group("checkpoints");
    list.add("save", &C::save, "folder to save into");
    list.add("save-interval", &C::save_interval, "iterations between saves").alias("persistent-save-interval");
    list.add("keep-last", &C::keep_last, "keep only the newest N checkpoints; 0: all").prints("0").not_from_core();
    list.add("keep-every", &C::keep_every, "never delete checkpoints whose iteration is a multiple of N")
        .prints("0")
        .not_from_core();
    list.add("no-save-optim", &C::no_save_optim, "save the weights only").none_unless_set();
    list.add("no-save-rng", &C::no_save_rng, "do not save random states")
        .none_unless_set()
        .no_effect("there is no random state to save: random numbers are a function of the seed and their place");
    list.add("load", &C::load,
             "folder to resume from; one with only Hugging Face files gives its weights (with --finetune)");
    list.add("no-load-optim", &C::no_load_optim, "fresh optimizer state").none_unless_set();
    list.add("no-load-rng", &C::no_load_rng, "fresh random states")
        .none_unless_set()
        .no_effect("there is no random state to load: random numbers are a function of the seed and their place");
    list.add("finetune", &C::finetune, "take the weights only: iteration, optimizer and schedule start afresh");
    list.add("ckpt-step", &C::ckpt_step, "iteration to load instead of the newest");
    list.add("pretrained-checkpoint", &C::pretrained_checkpoint,
             "folder whose weights are used when --load holds nothing yet");
    list.add("exit-on-missing-checkpoint", &C::exit_on_missing_checkpoint, "stop when --load holds no checkpoint");
    list.add("use-checkpoint-args", &C::use_checkpoint_args,
             "take the model's shape, its sequence length and tokenizer from the checkpoint, except what is given");
    list.add("async-save", &C::async_save, "save in the background")
        .none_unless_set()
        .no_effect("saving finishes before training goes on in this version; the checkpoint is the same");
    list.unbound(FlagStatus::inert,
                 "a checkpoint holds whole tensors by name, so any layout writes and reads the one format here",
                 {{"ckpt-format", "s{torch|torch_dist|zarr|torch_dcp|fsdp_dtensor}=torch_dist"},
                  {"dist-ckpt-format", "s > dist_ckpt_format_deprecated"},
                  {"use-dist-ckpt", "T"},
                  {"auto-detect-ckpt-format", "T"},
                  {"use-mp-args-from-checkpoint-args", "T"},
                  {"no-use-tokenizer-model-from-checkpoint-args", "F use_tokenizer_model_from_checkpoint_args"},
                  {"use-persistent-ckpt-worker", "T"},
                  {"ckpt-fully-parallel-save", "T > ckpt_fully_parallel_save_deprecated"},
                  {"no-ckpt-fully-parallel-save", "F ckpt_fully_parallel_save"},
                  {"ckpt-fully-parallel-load", "T"},
                  {"ckpt-assume-constant-structure", "T"}});
    list.unbound(FlagStatus::inert, "a missing or an extra tensor in a checkpoint is always an error here",
                 {{"dist-ckpt-strictness",
                   "s{assume_ok_unexpected|log_unexpected|log_all|raise_unexpected|raise_all|return_unexpected|return_"
                   "all|ignore_all}="
                   "assume_ok_unexpected"}});
    list.unbound(FlagStatus::refused,
                 "checkpoints of another life span are not built; use --save-interval with --keep-last",
                 {{"non-persistent-save-interval", "i"},
                  {"non-persistent-ckpt-type", "s{global|local|in_memory|None}"},
                  {"non-persistent-global-ckpt-dir", "s"},
                  {"non-persistent-local-ckpt-dir", "s"},
                  {"non-persistent-local-ckpt-algo", "s{fully_parallel|atomic}=fully_parallel"}});
    list.unbound(FlagStatus::refused, "a checkpoint needs no conversion: its folder is a Hugging Face model",
                 {{"ckpt-convert-format", "s{torch|torch_dist|zarr}"},
                  {"ckpt-convert-save", "s"},
                  {"ckpt-convert-update-legacy-dist-opt-format", "T"}});
    list.unbound(FlagStatus::inert, "a checkpoint holds whole tensors by name and is written and read in one way",
                 {{"ckpt-drop-redundant-extra-state", "T"}, {"dist-ckpt-workers", "i=1"}}, false);
    list.unbound(FlagStatus::refused, "use --ckpt-step to load another iteration", {{"override-ckpt-iteration", "?"}},
                 false);
}

}  // namespace tera
