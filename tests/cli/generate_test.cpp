// teratron generate on a checkpoint of ours and on a folder of Hugging Face files.
#include <gtest/gtest.h>

#include "cli/process.h"
#include "support/fake_model.h"
#include "support/model_configs.h"
#include "token/tokenizer.h"
#include "train/checkpoint.h"

namespace tera::test {
namespace {

/// A tokenizer of the 256 bytes and the end of document: every text is tokens, every token is text.
std::vector<TokenizerFile> byte_tokenizer(const TemporaryFolder& folder) {
    write_file(folder / "text.jsonl", "{\"text\": \"a\"}\n");
    const Outcome made = teratron({"tokenizer", "train", "--input", (folder / "text.jsonl").string(), "--vocab-size",
                                   "257", "--output", (folder / "tok").string()});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return {{"vocab.json", read_file(folder / "tok/vocab.json")}, {"merges.txt", read_file(folder / "tok/merges.txt")}};
}

class GenerateCommand : public ::testing::Test {
  protected:
    GenerateCommand() {
        ModelConfig config = tiny_llama();
        config.vocab = 264;
        config.true_vocab = 257;
        const FakeModel model(config, DType::f32, 3);
        CheckpointState state;
        state.iteration = 30;
        SaveOptions options;
        options.folder = save();
        save_checkpoint({config, model.params(), model.optimizer(), byte_tokenizer(folder_), 256, state}, options);
    }
    std::string save() const { return (folder_ / "save").string(); }
    Outcome generate(std::vector<std::string> more) const {
        std::vector<std::string> args = {"generate",  "--load",           save(), "--prompt",
                                         "Once upon", "--max-new-tokens", "8"};
        args.insert(args.end(), more.begin(), more.end());
        return teratron(args);
    }
    TemporaryFolder folder_;
};

TEST_F(GenerateCommand, ContinuesThePrompt) {
    const Outcome greedy = generate({"--greedy"});
    ASSERT_EQ(greedy.exit_code, 0) << greedy.err;
    EXPECT_EQ(greedy.out.rfind("Once upon", 0), 0u) << greedy.out;
    EXPECT_GT(greedy.out.size(), std::string("Once upon\n").size());
    EXPECT_NE(greedy.err.find("8 tokens in"), std::string::npos) << greedy.err;
    EXPECT_EQ(generate({"--greedy", "--threads", "1"}).out, greedy.out);
    EXPECT_EQ(generate({"--temperature", "0"}).out, greedy.out);
    EXPECT_EQ("Once upon" + generate({"--greedy", "--no-prompt"}).out, greedy.out);
}

TEST_F(GenerateCommand, TheSeedDecides) {
    const std::vector<std::string> wild = {"--temperature", "3", "--seed", "5"};
    const Outcome first = generate(wild);
    EXPECT_EQ(generate(wild).out, first.out);
    EXPECT_NE(generate({"--temperature", "3", "--seed", "6"}).out, first.out);
    const Outcome two = generate({"--temperature", "3", "--seed", "5", "--num-samples", "2", "--top-k", "50"});
    EXPECT_NE(two.out.find("== sample 2 of 2\n"), std::string::npos) << two.out;
}

TEST_F(GenerateCommand, AlsoFromTheIterationAndFromModelFilesAlone) {
    const std::string expected = generate({"--greedy"}).out, iteration = save() + "/iter_0000030";
    EXPECT_EQ(generate({"--greedy", "--load", iteration}).out, expected);
    EXPECT_EQ(generate({"--greedy", "--ckpt-step", "30"}).out, expected);
    std::filesystem::remove_all(iteration + "/training_state");
    EXPECT_EQ(generate({"--greedy", "--load", iteration}).out, expected);
    write_file(folder_ / "prompt.txt", "Once upon");
    EXPECT_EQ(teratron({"generate", "--load", iteration, "--prompt-file", (folder_ / "prompt.txt").string(), "--greedy",
                        "--max-new-tokens", "8"})
                  .out,
              expected);
}

TEST_F(GenerateCommand, BadInputIsOneLine) {
    const auto refused = [&](const std::vector<std::string>& args, const std::string& part) {
        const Outcome o = generate(args);
        EXPECT_EQ(o.exit_code, 2) << o.err;
        EXPECT_EQ(line_count(o.err), 1u) << o.err;
        EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
        EXPECT_TRUE(o.out.empty()) << o.out;
    };
    refused({"--load", (folder_ / "absent").string()}, "holds no checkpoint");
    refused({"--ckpt-step", "31"}, "iter_0000031");
    refused({"--top-p", "0"}, "--top-p");
    refused({"--temperature", "-1"}, "--temperature");
    refused({"--max-new-tokens", "0"}, "--max-new-tokens");
    refused({"--num-samples", "0"}, "--num-samples");
    refused({"--prompt-file", "x"}, "not both");
    refused({"--prompt", std::string(100, 'x')}, "100 tokens, but the model has 24 positions");
    refused({"--tokenizer-type", "NullTokenizer", "--vocab-size", "1000", "--prompt", "999"}, "token 999");
    refused({"--nonsense"}, "--nonsense");
    std::filesystem::remove(save() + "/iter_0000030/merges.txt");
    refused({}, "holds no tokenizer");
}

}  // namespace
}  // namespace tera::test
