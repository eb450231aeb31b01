package codex

import (
	"context"
	"fmt"

	"ductor/cli"
	"ductor/cli/turn"
)

// sweepScript ends every process that has $1 in its environment: TERM, a second, KILL, until none is left. It
// runs where the agent does, which may be a container. The pattern is never in its own environment.
const sweepScript = `i=0
while [ $i -lt 100 ]; do
	found=
	for f in $(grep -lsF -- "$1" /proc/[0-9]*/environ); do
		pid=${f#/proc/}; pid=${pid%/environ}
		found=yes
		if [ $i -lt 20 ]; then kill -TERM "$pid"; else kill -KILL "$pid"; fi
	done 2>/dev/null
	[ -n "$found" ] || exit 0
	i=$((i+1)); sleep 0.05
done
exit 1`

// sweep ends every process whose environment has the entry.
func (p *Provider) sweep(ctx context.Context, entry string) error {
	_, err := turn.Output(ctx, p.opts.Launcher, cli.Command{
		Path: "sh", Args: []string{"-c", sweepScript, "sh", entry},
		Env: []string{"PATH=" + or(cli.Variable(p.opts.Env(), "PATH"), "/usr/bin:/bin")},
		For: cli.Purpose{Agent: Agent},
	}, stopWait)
	if err != nil {
		return fmt.Errorf("end what was left of a turn: %w", err)
	}
	return nil
}
