// The definitions of backends/local, which are part of hypertune::hypertune.
#pragma once

#include <hypertune/local/impl/cgroup.hpp>
#include <hypertune/local/impl/child_process.hpp>
#include <hypertune/local/impl/command.hpp>
#include <hypertune/local/impl/command_line.hpp>
#include <hypertune/local/impl/command_output.hpp>
#include <hypertune/local/impl/command_run.hpp>
#include <hypertune/local/impl/free_port.hpp>
#include <hypertune/local/impl/gpu_gate.hpp>
#include <hypertune/local/impl/gpu_memory.hpp>
#include <hypertune/local/impl/gpu_watch.hpp>
#include <hypertune/local/impl/guardian.hpp>
#include <hypertune/local/impl/number_text.hpp>
#include <hypertune/local/impl/output_lines.hpp>
#include <hypertune/local/impl/placeholder_text.hpp>
#include <hypertune/local/impl/process_driver.hpp>
#include <hypertune/local/impl/process_end.hpp>
#include <hypertune/local/impl/process_options.hpp>
#include <hypertune/local/impl/process_workers.hpp>
#include <hypertune/local/impl/processes.hpp>
#include <hypertune/local/impl/repetitions.hpp>
#include <hypertune/local/impl/report_join.hpp>
#include <hypertune/local/impl/report_line.hpp>
#include <hypertune/local/impl/slot_binding.hpp>
#include <hypertune/local/impl/usage_meter.hpp>
