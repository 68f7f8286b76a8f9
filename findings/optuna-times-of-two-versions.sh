#!/usr/bin/env bash
# Optuna 4.9.0 and 5.0.0 on one database: the same columns hold local time and UTC, and nothing says which.
#
# Both read and write one SQLite file with the same schema, without a migration, so one would guess that they agree on what
# its columns mean. 4.9.0 writes the time of the machine's zone without naming it; 5.0.0 writes UTC into the same columns
# and reads them as UTC. A study that was begun with one version and continued with the other has trials that are hours
# apart from what their clocks said: a trial of 4.9.0 at 12:00 in Tokyo is read by 5.0.0 as one of 21:00 there. Whoever
# merges logs by time, or measures the length of a study by its first and last trial, is off by the zone's offset.
#
# Seen on 2026-11-27: a difference of 9 hours with TZ=Asia/Tokyo.
source "$(dirname "$0")/common.sh"
export TZ=Asia/Tokyo
for version in 4.9.0 5.0.0; do python "$version" "optuna==$version"; done

# what VERSION: writes a trial with this version and prints how far its stored time is from UTC, in hours.
cat >"$tmp/write.py" <<'P'
import datetime, sqlite3, sys
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
path = sys.argv[1]
study = optuna.create_study(storage=f"sqlite:///{path}", study_name="s", load_if_exists=True)
study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
row = sqlite3.connect(path).execute("select datetime_start from trials order by trial_id desc limit 1").fetchone()
stored = datetime.datetime.fromisoformat(row[0])
now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
print(round((stored - now).total_seconds() / 3600))
P
hours() { "$tmp/$1/bin/python" "$tmp/write.py" "$tmp/$2.db" 2>/dev/null; }
expect "hours from UTC, stored by 4.9.0" 9 "$(hours 4.9.0 one)"
expect "hours from UTC, stored by 5.0.0 in the same file" 0 "$(hours 5.0.0 one)"

# How 5.0.0 reads the trial that 4.9.0 has just written, in hours from now.
cat >"$tmp/read.py" <<'P'
import datetime, sys
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
start = optuna.load_study(storage=f"sqlite:///{sys.argv[1]}", study_name="s").trials[0].datetime_start
now = datetime.datetime.now(start.tzinfo) if start.tzinfo else datetime.datetime.now()
print(round((start - now).total_seconds() / 3600))
P
expect "hours from now of 4.9.0's trial, read by 4.9.0" 0 "$("$tmp/4.9.0/bin/python" "$tmp/read.py" "$tmp/one.db" 2>/dev/null)"
expect "hours from now of 4.9.0's trial, read by 5.0.0" 9 "$("$tmp/5.0.0/bin/python" "$tmp/read.py" "$tmp/one.db" 2>/dev/null)"
