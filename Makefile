# Front door. `make demo` runs the main job, `make test` passes the tests; both install what they lack.

.PHONY: demo test quality-quant quality-evict learn lib install uninstall header soak fuzz faults workloads trace bench clean

# A small model generates text through paged, shared key-value memory.
demo:
	scripts/tools.sh cc python3 pip
	scripts/fetch_model.sh
	$(MAKE) -C examples/c demo

# All tests; scripts/test.sh lists the steps and runs single ones by name.
test:
	scripts/test.sh

# What quantised keys and values cost a real model, beside reference figures. Half an hour on two cores.
quality-quant:
	scripts/quality_quant.sh

# What evicting tokens costs it, policy by policy. Half an hour on two cores.
quality-evict:
	scripts/quality_evict.sh

# A policy of eviction learned from what the heads of that model pay attention to in one text, judged on another. A minute.
learn:
	scripts/learn.sh

# libkvfolio.a and libkvfolio.so, in target/capi.
lib:
	cargo run -q -p xtask -- capi

# Headers, libraries, kvfolio.pc and the CMake package: `make install PREFIX=/usr/local DESTDIR=`. See scripts/install.sh.
install: lib
	scripts/install.sh install
uninstall:
	scripts/install.sh uninstall
export PREFIX LIBDIR DESTDIR

# The C header and the list of exports, from the sources of the C ABI.
header:
	cargo run -q -p xtask -- header

# Ten million random groups per codec: bounds, published formulas, and rows in every instruction set against the codec. Ten
# minutes on two cores; a million takes one. A million steps of streams of evicted tokens over pages. Then a million random
# operations per configuration: model, Rust API and C ABI in lock-step, hours.
soak: export KVF_GROUPS ?= 10000000
soak: export KVF_STEPS ?= 1000000
soak:
	cargo test --release -q -p kvfolio --all-features --test quant -- bounds:: reference:: certified::
	cargo test --release -q -p kvfolio-kernels --test rows every_instruction_set
	cargo test --release -q -p kvfolio --all-features --test evict paged::
	cargo run --release -q -p kvfolio-tests --bin kvf-soak -- --ops 1000000

# The fuzz targets, FUZZ_SECONDS each; what they find stays in target/fuzz. See tests/FUZZING.md.
fuzz:
	scripts/fuzz.sh
export FUZZ_SECONDS

# Ten faults planted one at a time: each must be found within a minute by the command that tests/faults/LIST names.
faults:
	scripts/faults.sh

# What a step costs: workloads W1 to W6.
workloads:
	cargo run --release -q -p kvfolio-examples --bin kvf-workloads

# Hit rates of real request traces, beside an independent calculation.
trace:
	scripts/traces.sh

# Side by side with other managers, which are fetched and built first (minutes): `make bench WORKLOADS="W1 W5" RUNS=9`.
bench:
	scripts/bench.sh $(WORKLOADS)

clean:
	cargo clean
	rm -rf build
