#include "common/base/breakage.h"

#include <stddef.h>

const struct breakage_entry breakage_table[BREAKAGE_COUNT] = {
    [BREAKAGE_NONE] = {"none", "nothing is broken", NULL, NULL},
    [BREAKAGE_Q_TEMPERATURE] = {"q-temperature", "the drafter samples at 0.8 times the temperature of the q that it sends",
                                "huggingface/transformers#32867", "draws"},
    [BREAKAGE_Q_TOP_K] = {"q-top-k", "the drafter samples from the 8 best tokens of q, and sends all of q", "huggingface/transformers#47932",
                          "draws"},
    [BREAKAGE_Q_ROW] = {"q-row", "drafts after the first are tested with the q of the draft before", "huggingface/transformers#28166", "law"},
    [BREAKAGE_SHARED_COIN] = {"shared-coin", "the accept test throws the coin that drew the draft", "sgl-project/sglang#7231", "law"},
    [BREAKAGE_RESIDUAL_P] = {"residual-p", "a rejected draft is replaced by a draw from p, not from max(0, p - q)", "vllm-project/vllm-ascend#7807",
                             "law"},
    [BREAKAGE_ACCEPT_ALL] = {"accept-all", "every draft is accepted", "sgl-project/sglang#35771", "equality"},
    [BREAKAGE_STALE_ROW] = {"stale-row", "drafts after the first are tested by the target's row before theirs", "openvinotoolkit/openvino.genai#4190",
                            "equality"},
    [BREAKAGE_DRAFTER_BONUS] = {"drafter-bonus", "the token after a whole accepted draft is drawn from the drafter's last q",
                                "ohdearquant/lattice#243", "equality"},
    [BREAKAGE_LATE_ACCEPT] = {"late-accept", "drafts from the third of a proposal on are accepted, whatever p is",
                              "accept-all, where it begins later than the tokens whose law is compared", "law"},
    [BREAKAGE_BRANCH_NOISE] = {"branch-noise", "what is drafted ahead is drawn with the noise that corrections are drawn with",
                               "vllm-project/vllm#54282", "draws", BREAKAGE_OF_BRANCHES, NULL},
    [BREAKAGE_BRANCH_VALUE] = {"branch-value", "of two drafts for a text ahead the likelier is proposed, as if it alone had been drawn",
                               "what apple/ml-recurrent-drafter#6 reports", "draws", BREAKAGE_OF_BRANCHES, NULL},
    [BREAKAGE_STALE_PATH] = {"stale-path", "the accepted path of a tree is not moved in the cache: what is there of rejected drafts stays",
                             "sgl-project/sglang#30775", "equality", BREAKAGE_OF_TREES, NULL},
    [BREAKAGE_SIBLING_Q] =
        {"sibling-q", "a sibling is tested with all of q, as if those before it had not been taken out of it: a lot with --draft-temperature 0.3",
         "NVIDIA/TensorRT-LLM#15098", "law", BREAKAGE_OF_SIBLINGS, "without-replacement"},
    [BREAKAGE_SIBLING_P] = {"sibling-p",
                            "a sibling is tested against all of p, as if those before it had taken nothing of it: a lot with --draft-temperature 0.3",
                            "what NJUNLP/MCSD#5 asks about", "law", BREAKAGE_OF_SIBLINGS, "multistep"},
    [BREAKAGE_SIBLING_ORDER] = {"sibling-order", "siblings are tested from the likeliest on, not in the order in which they were drawn",
                                "what SafeAILab/EAGLE#93 asks about", "law", BREAKAGE_OF_SIBLINGS, "multistep|without-replacement"},
    [BREAKAGE_SIBLING_TOP_K] = {"sibling-top-k", "the likeliest tokens of q are proposed as siblings, and q is sent",
                                "what SafeAILab/EAGLE#110 asks about", "draws", BREAKAGE_OF_SIBLINGS,
                                "multistep|without-replacement|k-sequential|traversal"},
};
