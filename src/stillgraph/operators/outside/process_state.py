"""Which of Python's and torch's functions read or set what the whole process shares, by name: one table for all.

A clock is read at every call of a program. A setting is asked for again before a program is used. What only tells how
things stand at the moment is refused, and so is what sets anything: a program would have done it once. Functions that
a system does not have are left out.
"""

from __future__ import annotations

import asyncio
import atexit
import codecs
import copyreg
import csv
import decimal
import faulthandler
import gc
import importlib
import linecache
import locale
import logging
import multiprocessing
import os
import pathlib
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import tracemalloc
import weakref
from typing import Any

import numpy
import torch

try:
    import resource as _resource
except ImportError:  # there is none on Windows
    _RESOURCE: Any = None
else:
    _RESOURCE = _resource


def members(owner: Any, names: str) -> tuple[Any, ...]:
    """Those of an object's attributes that there are, by their names."""
    return tuple(getattr(owner, name) for name in names.split() if hasattr(owner, name))


# ---- read, and asked again before a program is used
SETTINGS = (
    *members(os, "getcwd getcwdb getpid cpu_count access listdir get_inheritable"),
    *members(os.path, "exists lexists isfile isdir islink getsize getmtime getctime realpath relpath samefile"),
    *members(pathlib.Path, "exists is_file is_dir is_symlink read_text read_bytes cwd resolve samefile"),
    *members(logging.Logger, "isEnabledFor getEffectiveLevel hasHandlers"),
    *(logging.getLevelName, shutil.which, tempfile.gettempdir, csv.field_size_limit, csv.list_dialects),
    *members(locale, "getlocale getpreferredencoding setlocale localeconv"),
    *members(threading, "get_ident active_count stack_size gettrace getprofile"),
    *members(sys, "getrecursionlimit getswitchinterval gettrace get_int_max_str_digits getdlopenflags"),
    *members(gc, "isenabled get_threshold get_debug"),
    *members(signal, "getsignal"),
    *(faulthandler.is_enabled, tracemalloc.is_tracing, socket.getdefaulttimeout),
    *members(_RESOURCE, "getrlimit"),
    *members(asyncio, "get_event_loop_policy"),
    *members(numpy, "geterr geterrcall getbufsize get_printoptions"),
    *members(time, "localtime mktime ctime"),
    *members(torch, "get_num_interop_threads get_num_threads is_warn_always_enabled"),
    *members(torch, "get_autocast_dtype get_autocast_cpu_dtype get_autocast_gpu_dtype is_autocast_cache_enabled"),
    *members(torch, "is_deterministic_algorithms_warn_only_enabled"),
    *(torch.cuda.is_available, torch.sparse.check_sparse_tensor_invariants.is_enabled),
    *members(torch.backends.cuda, "flash_sdp_enabled mem_efficient_sdp_enabled math_sdp_enabled cudnn_sdp_enabled"),
    *(torch.backends.mha.get_fastpath_enabled, torch.hub.get_dir, torch.multiprocessing.get_sharing_strategy),
    torch.__future__.get_swap_module_params_on_conversion,
)

# ---- only how things stand at the moment
MOMENTARY = (
    *members(os, "times getloadavg get_terminal_size read pread readv lseek statvfs fstatvfs"),
    *members(_RESOURCE, "getrusage"),
    *members(gc, "get_count get_stats get_objects get_referrers get_freeze_count is_finalized"),
    *members(sys, "getrefcount getallocatedblocks getsizeof getprofile _current_frames _current_exceptions"),
    *members(weakref, "getweakrefcount getweakrefs"),
    *members(threading, "enumerate"),
    *members(tracemalloc, "get_traced_memory take_snapshot get_tracemalloc_memory"),
    *members(signal, "getitimer sigpending"),
    *members(shutil, "disk_usage"),
    *members(linecache, "getline getlines"),
    *members(torch.cuda, "memory_allocated max_memory_allocated memory_reserved max_memory_reserved mem_get_info"),
    *members(torch.cuda, "memory_stats memory_summary memory_snapshot utilization temperature power_draw"),
)

# ---- set
QUERIES_WITHOUT = {csv.field_size_limit: 0, threading.stack_size: 0, locale.setlocale: 1}
"""Functions that only tell what is set when they are called with no more arguments than so many."""

SETTERS = (
    *members(sys, "setrecursionlimit setswitchinterval settrace setprofile set_int_max_str_digits setdlopenflags"),
    *members(sys, "set_asyncgen_hooks set_coroutine_origin_tracking_depth addaudithook"),
    *members(threading, "settrace setprofile settrace_all_threads setprofile_all_threads"),
    *members(os, "umask fchdir chroot close closerange dup dup2 pipe pipe2 set_inheritable set_blocking nice"),
    *members(os, "setpriority sched_setaffinity sched_setscheduler register_at_fork wait waitpid openpty sendfile"),
    *members(os, "pwrite writev"),
    *members(signal, "siginterrupt pthread_sigmask set_wakeup_fd pause sigwait"),
    *members(gc, "enable disable freeze unfreeze set_threshold set_debug"),
    *members(faulthandler, "enable disable register unregister dump_traceback_later cancel_dump_traceback_later"),
    *members(csv, "register_dialect unregister_dialect"),
    *members(atexit, "register unregister"),
    *members(copyreg, "pickle constructor add_extension remove_extension clear_extension_cache"),
    *members(codecs, "register unregister register_error"),
    *members(tracemalloc, "start stop clear_traces reset_peak"),
    *members(socket, "setdefaulttimeout sethostname"),
    *members(time, "tzset clock_settime"),
    *members(decimal, "setcontext"),
    *members(importlib, "reload"),
    *members(_RESOURCE, "setrlimit"),
    *members(asyncio, "set_event_loop set_event_loop_policy"),
    *members(multiprocessing, "set_start_method"),
    *members(numpy, "seterr seterrcall setbufsize set_printoptions"),
    *members(torch, "set_num_threads set_num_interop_threads set_printoptions set_warn_always set_flush_denormal"),
    *members(torch.hub, "set_dir"),
    *members(torch.multiprocessing, "set_sharing_strategy set_start_method"),
    *members(torch.__future__, "set_swap_module_params_on_conversion set_overwrite_module_params_on_conversion"),
    *members(torch.backends.mha, "set_fastpath_enabled"),
    *members(torch.backends.cuda, "enable_flash_sdp enable_mem_efficient_sdp enable_math_sdp enable_cudnn_sdp"),
    *members(torch.backends.cuda, "preferred_linalg_library preferred_blas_library"),
    *QUERIES_WITHOUT,
)
