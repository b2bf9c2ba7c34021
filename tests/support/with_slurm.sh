#!/usr/bin/env bash
# with_slurm.sh [COMMAND...]   runs it beside a Slurm of its own: two nodes of eight CPUs on this machine, by the names
#                              localhost and that of the host, which are there as long as the command runs
#
# Without a command it says on one line why that cannot be, or nothing. Needs slurmctld, slurmd and srun
# (scripts/setup.sh --slurm), and root.
set -euo pipefail

for program in slurmctld slurmd srun; do
    command -v $program >/dev/null || { echo "there is no $program here (scripts/setup.sh --slurm)"; exit 3; }
done
[ "$(id -u)" = 0 ] || { echo "a Slurm of one's own needs root"; exit 3; }
host=$(hostname -s)
[ "$host" != localhost ] && getent hosts "$host" >/dev/null || { echo "the host's name cannot be found"; exit 3; }
[ $# -gt 0 ] || exit 0

folder=$(mktemp -d)
end() {
    local pid_file
    timeout 5 scancel --signal=KILL --user="$(id -un)" 2>/dev/null || true  # what an interrupted command has left
    for pid_file in "$folder"/*.pid; do
        [ ! -s "$pid_file" ] || kill -9 "$(cat "$pid_file")" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap end EXIT
trap 'exit 143' TERM INT
port=$((20000 + $$ % 20000))
export SLURM_CONF=$folder/slurm.conf
mkdir "$folder/state"
cat >"$SLURM_CONF" <<CONF
ClusterName=here
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/%n.log
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
NodeName=$host NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=8
NodeName=localhost NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=8
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
slurmctld
slurmd -N "$host"
slurmd -N localhost
for _ in $(seq 100); do
    [ "$(sinfo -h -t idle -o %D 2>/dev/null || true)" != 2 ] || break
    sleep 0.1
done
[ "$(sinfo -h -t idle -o %D)" = 2 ] || { cat "$folder"/*.log >&2; echo "with_slurm.sh: its nodes did not come up" >&2; exit 3; }
"$@"
