/* The temperature in a plate, by successive over-relaxation on several MPI ranks: each has a band of the rows. How many
 * sweeps over the plate it takes depends on OMEGA, between 1 and 2. Rank 0 reports.
 *
 *   mpicc -O2 -o build/relax examples/mpi/relax.c -lm && mpirun -n 4 build/relax 1.9
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { columns = 128, rows = 128 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const double omega = argc > 1 ? atof(argv[1]) : 1.5;
  const int first = rows * rank / size, own = rows * (rank + 1) / size - first;
  const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL, below = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
  /* One more row above and below, and one more column on each side. */
  double(*plate)[columns + 2] = calloc((size_t)own + 2, sizeof *plate);
  if (plate == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  if (rank == 0)
    for (int x = 0; x < columns + 2; ++x) plate[0][x] = 100; /* the upper edge is hot */

  int sweep = 0;
  double change = 1;
  for (; change > 1e-4 && sweep < 20000; ++sweep) {
    double largest = 0;
    for (int color = 0; color < 2; ++color) { /* as on a chessboard: neighbours have the other colour */
      MPI_Sendrecv(plate[own], columns + 2, MPI_DOUBLE, below, 0, plate[0], columns + 2, MPI_DOUBLE, above, 0,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Sendrecv(plate[1], columns + 2, MPI_DOUBLE, above, 1, plate[own + 1], columns + 2, MPI_DOUBLE, below, 1,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int y = 1; y <= own; ++y)
        for (int x = 1 + (first + y + color) % 2; x <= columns; x += 2) {
          const double mean = (plate[y - 1][x] + plate[y + 1][x] + plate[y][x - 1] + plate[y][x + 1]) / 4;
          const double move = omega * (mean - plate[y][x]);
          plate[y][x] += move;
          largest = fmax(largest, fabs(move));
        }
    }
    MPI_Allreduce(&largest, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  if (rank == 0) printf("{\"sweeps\": %d, \"change\": %g}\n", sweep, change);
  free(plate);
  MPI_Finalize();
  return 0;
}
