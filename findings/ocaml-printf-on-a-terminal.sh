#!/usr/bin/env bash
# OCaml 4.13.1 (Debian 12): Printf.printf keeps its lines back on a terminal too.
#
# A program of C, C++, Python, Perl, Ruby, Haskell or Pascal that keeps its lines back on a pipe writes each line at once
# when its standard output is a terminal, so a pseudo-terminal is the usual cure. OCaml's channels do not look at what
# they write to: a line of Printf.printf or print_string leaves at exit, or when 64 KiB have gathered, on a terminal as on
# a pipe. Only a flush in the program helps: "%!" in the format, print_endline, or flush stdout.
#
# Seen on 2026-11-27: "at exit" for printf on both, "at once" for printf with %! on both.
source "$(dirname "$0")/common.sh"

version=4.13.1-4
debian ocaml="$version" ocaml-base="$version" ocaml-interp="$version"
export OCAMLLIB=$tmp/root/usr/lib/ocaml
ocaml=("$tmp/root/usr/bin/ocamlrun" "$tmp/root/usr/bin/ocaml")
expect version "The OCaml toplevel, version 4.13.1" "$("${ocaml[@]}" -version)"

# The program waits until a file exists. Its line has left before, or it has not.
cat >"$tmp/arrives.py" <<'P'
import os, pty, select, subprocess, sys
kind, gate, command = sys.argv[1], sys.argv[2], sys.argv[3:]
reader, writer = pty.openpty() if kind == "terminal" else os.pipe()
child = subprocess.Popen(command + [gate], stdout=writer)
os.close(writer)
at_once = bool(select.select([reader], [], [], 5)[0])  # seconds; the interpreter starts in 0.1
open(gate, "w").close()
child.wait()
os.remove(gate)
print("at once" if at_once else "at exit")
P
wait_for_gate='while not (Sys.file_exists Sys.argv.(1)) do ignore (Sys.command "sleep 0.1") done'
printf 'let () = Printf.printf "loss 0.5\\n"; %s\n' "$wait_for_gate" >"$tmp/plain.ml"
printf 'let () = Printf.printf "loss 0.5\\n%%!"; %s\n' "$wait_for_gate" >"$tmp/flushed.ml"
arrives() { python3 "$tmp/arrives.py" "$1" "$tmp/gate" "${ocaml[@]}" "$tmp/$2.ml"; }

expect "a line by printf, on a pipe" "at exit" "$(arrives pipe plain)"
expect "a line by printf, on a terminal" "at exit" "$(arrives terminal plain)"
expect "a line by printf with %!, on a pipe" "at once" "$(arrives pipe flushed)"
expect "a line by printf with %!, on a terminal" "at once" "$(arrives terminal flushed)"
