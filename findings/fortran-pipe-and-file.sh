#!/usr/bin/env bash
# gfortran 12.2.0 with glibc 2.36 (Debian 12): lines of Fortran and C keep their order on a pipe, and lose it in a file.
#
# A C program's lines stay in a buffer of 4 KiB on a pipe as in a file. A Fortran program is the other way round where one
# would not expect it: libgfortran gathers records for a regular file only, and hands each PRINT to a pipe at once. It also
# calls C's fflush(stdout) before, so that even a C function called by a Fortran solver prints in time on a pipe. So a
# Fortran solver can be followed through a pipe without stdbuf. Redirected into a file, the same run shows all lines of C
# before all lines of Fortran: the losses stand before the iterations that they belong to, and a pattern that pairs a loss
# with the last iteration seen works on a pipe and fails on the log file.
#
# Seen on 2026-11-27: as in the expectations below.
source "$(dirname "$0")/common.sh"

version=12.2.0-14+deb12u1
debian gfortran-12="$version" libgfortran-12-dev="$version" libgfortran5="$version" gcc-12="$version" cpp-12="$version" \
  libgcc-12-dev="$version"
lib=$tmp/root/usr/lib/gcc/x86_64-linux-gnu/12
fortran=("$tmp/root/usr/bin/x86_64-linux-gnu-gfortran-12" -B"$lib" -L"$tmp/root/usr/lib/x86_64-linux-gnu" -L"$lib")
expect version "12.2.0" "$("${fortran[@]}" -dumpfullversion)"

cat >"$tmp/loss.c" <<'C'
#include <stdio.h>
void print_loss(const int* step) { printf("loss %g\n", 1.0 / *step); }
C
cat >"$tmp/solve.f90" <<'F'
program solve
  interface
    subroutine print_loss(step) bind(c)
      use iso_c_binding, only: c_int
      integer(c_int), intent(in) :: step
    end subroutine
  end interface
  integer :: i
  do i = 1, 3
    print '(A,I0)', 'iteration ', i
    call print_loss(i)
  end do
  print '(A)', 'done'
end program
F
"${fortran[@]}" "$tmp/solve.f90" "$tmp/loss.c" -o "$tmp/solve"
export LD_LIBRARY_PATH=$tmp/root/usr/lib/x86_64-linux-gnu
on_one_line() { tr -d '\r' | paste -sd, ; }

in_order="iteration 1,loss 1,iteration 2,loss 0.5,iteration 3,loss 0.333333,done"
expect "on a pipe" "$in_order" "$("$tmp/solve" | on_one_line)"
expect "on a terminal" "$in_order" "$(python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$tmp/solve" </dev/null | on_one_line)"
"$tmp/solve" >"$tmp/log"
expect "in a file" "loss 1,loss 0.5,loss 0.333333,iteration 1,iteration 2,iteration 3,done" "$(on_one_line <"$tmp/log")"

# The same lines by C alone, for comparison: one write at exit on a pipe.
cat >"$tmp/c.c" <<'C'
#include <stdio.h>
#include <unistd.h>
int main(void) { printf("iteration 1\n"); write(1, "written later\n", 14); return 0; }
C
"$tmp/root/usr/bin/x86_64-linux-gnu-gcc-12" -B"$lib" "$tmp/c.c" -o "$tmp/c"
expect "C alone on a pipe" "written later,iteration 1" "$("$tmp/c" | on_one_line)"
