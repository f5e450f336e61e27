"""llama.cpp's own convert_hf_to_gguf.py for the embedded pair: convert_embedded.py LLAMA_CPP MODEL OUTFILE TYPE.

It knows tokenizers by a hash of what they say and refuses those that it has not seen, hence what it is told here: byte pairs cut as GPT-2 cuts them.
"""
import runpy
import sys

source, model, outfile, kind = sys.argv[1:]
sys.path[:0] = [source, source + "/gguf-py"]

from conversion import base, llama  # noqa: E402

base.TextModel.get_vocab_base_pre = lambda self, tokenizer: "gpt-2"
llama.LlamaModel.set_vocab = lambda self: self._set_vocab_gpt2()
program = source + "/convert_hf_to_gguf.py"
sys.argv = [program, model, "--outfile", outfile, "--outtype", kind]
runpy.run_path(program, run_name="__main__")
