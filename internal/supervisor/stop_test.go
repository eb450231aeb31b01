package supervisor

import (
	"bufio"
	"context"
	"ductor/internal/proctree"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const threeDeep = `setsid nohup sh -c 'setsid nohup sh -c "setsid nohup sleep 600 & sleep 600" & sleep 600' >/dev/null 2>&1 & `

func TestStopEndsEveryDescendant(t *testing.T) {
	t.Parallel()
	const grace = 300 * time.Millisecond
	for name, tc := range map[string]struct {
		spec  Spec
		least int
	}{
		"three sessions deep": {sh(threeDeep + `sleep 0.2; echo ready; sleep 600`), 5},
		"deaf to TERM":        {sh(`trap '' TERM; ` + threeDeep + `sleep 0.2; echo ready; while :; do sleep 600; done`), 5},
		"every kind":          {helper(t, "family"), 3},
	} {
		for _, how := range []string{"", " after a re-attach", " by Kill", " with the supervisor killed", " by its mark, with the supervisor killed"} {
			t.Run(name+how, func(t *testing.T) {
				t.Parallel()
				opts := Options{}
				if strings.HasPrefix(how, " by its mark") {
					opts = withoutCgroups(t)
				}
				root := openRoot(t, opts)
				spec := tc.spec
				spec.Limits.Grace = grace
				run := start(t, root, spec)
				readLine(t, run.Stdout())
				if n := len(survivors(t, run.ID())); n < tc.least {
					t.Fatalf("only %d processes: the test proves nothing", n)
				}
				began := time.Now()
				switch how {
				case " after a re-attach":
					run.Detach()
					run = attach(t, root, run.ID(), run.Offset())
					mustStop(t, run, grace)
				case " by Kill":
					run.Detach()
					if err := root.Kill(t.Context(), run.ID()); err != nil {
						t.Fatal(err)
					}
				case " with the supervisor killed", " by its mark, with the supervisor killed":
					kill9(t, run.Info().Supervisor)
					mustStop(t, run, grace)
				default:
					mustStop(t, run, grace)
				}
				t.Logf("stopped in %s", time.Since(began)) // grace and half a second, when the machine is ours alone
				if left := survivors(t, run.ID()); len(left) > 0 {
					t.Errorf("%v are still there", left)
				}
			})
		}
	}
}

// An agent that sees its tools end before it is told to end itself would report what they did as its own answer.
func TestTheAgentIsToldToEndFirst(t *testing.T) {
	t.Parallel()
	run := start(t, openRoot(t, Options{}), sh(`setsid sleep 600 & sleep 600 & sleep 600 & echo ready; wait`))
	readLine(t, run.Stdout())
	agent, _ := proctree.LookUp(run.PID())
	for range 20 {
		members, err := proctree.New(agent, markOf(run.ID())).Members()
		if err != nil || len(members) != 4 || members[0] != agent {
			t.Fatalf("%v of %v, %v", members, agent, err)
		}
	}
}

// One that takes its time to end is ahead of its tools all the same.
func TestTheAgentHasAHeadStart(t *testing.T) {
	t.Parallel()
	run := start(t, openRoot(t, Options{}), sh(`trap : TERM
		setsid sh -c 'trap "date +%s%N; exit" TERM; echo ready; while :; do sleep 0.01; done' &
		while :; do sleep 0.01; done`))
	out := bufio.NewReader(run.Stdout())
	if line, err := out.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatal(line, err)
	}
	began := time.Now().UnixNano()
	mustStop(t, run, 2*time.Second)
	line, err := out.ReadString('\n')
	told, wrong := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil || wrong != nil || time.Duration(told-began) < proctree.HeadStart {
		t.Errorf("the tool is told %s after the agent: %q, %v", time.Duration(told-began), line, err)
	}
}

func kill9(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestStopSaysWhoEndedIt(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	run := start(t, root, sh(`sleep 600`))
	mustStop(t, run, time.Second)
	if got := run.Exit(); got != (Exit{Known: true, Code: -15, Signal: true, By: ByStop}) {
		t.Errorf("%+v", got)
	}
	mustStop(t, run, time.Second) // again
}

func TestShorterGraceHastensTheStop(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	run := start(t, root, helper(t, "deaf"))
	readLine(t, run.Stdout())
	stopped := make(chan error)
	go func() { stopped <- run.Stop(t.Context(), time.Hour) }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run.Stop(ctx, time.Hour); err != nil { // a grace that is over
		t.Fatal(err)
	}
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if got := run.Exit(); got.Code != -9 {
		t.Errorf("%+v", got)
	}
}

func TestForkBombEnds(t *testing.T) {
	needRoot(t) // to give the bomb a user and a process limit of its own
	// No shell: one that cannot fork ends, and some bombs with it before they have gone off.
	const bomb = `perl -MPOSIX -e '$SIG{TERM} = "IGNORE"; $| = 1; print "ready\n";
		while (1) { my $pid = fork; setsid if defined $pid && !$pid; select undef, undef, undef, 0.02 if !defined $pid }'`
	t.Run("with its supervisor", func(t *testing.T) {
		root := openRoot(t, Options{})
		run := start(t, root, limited("sh", "-c", bomb))
		readLine(t, run.Stdout())
		eventually(t, "the bomb goes off", func() bool {
			info, err := run.Inspect(t.Context())
			return err == nil && info.Processes > 100
		})
		began := time.Now()
		mustStop(t, run, 100*time.Millisecond)
		t.Logf("stopped in %s", time.Since(began))
		if left := survivors(t, run.ID()); len(left) > 0 {
			t.Errorf("%d are still there", len(left))
		}
	})
	t.Run("without mark, its supervisor killed", func(t *testing.T) {
		needCgroup(t)
		root := openRoot(t, Options{})
		run := start(t, root, limited("sh", "-c", `env -i setsid sh -c "$0" & wait`, bomb))
		readLine(t, run.Stdout())
		eventually(t, "the run is known", func() bool { return exists(t, root.path(run.ID()), specFile) })
		c := noted(root.dir, root.path(run.ID()))
		kill9(t, run.Info().Supervisor)
		await(t, "done", run.Done())
		eventually(t, "the bomb goes off", func() bool { return len(c.PIDs()) > 100 })
		began := time.Now()
		mustStop(t, run, 100*time.Millisecond)
		t.Logf("stopped in %s", time.Since(began))
		if left := c.PIDs(); len(left) > 0 || c.Populated() {
			t.Errorf("%d are still there", len(left))
		}
	})
}

// limited is a program of a user and with a process limit of its own: one that was killed counts until somebody reaped it.
func limited(program ...string) Spec {
	user := strconv.Itoa(100_000 + rand.IntN(1<<30))
	return Spec{Path: "setpriv", Args: append([]string{"--reuid", user, "--clear-groups", "prlimit", "--nproc=120"}, program...), Env: os.Environ()}
}

func TestKilledSupervisorTakesItsAgentAlong(t *testing.T) {
	root := openRoot(t, Options{})
	run := start(t, root, sh(`(trap '' HUP TERM; sleep 600) & echo one; echo two >&2; sleep 600`))
	readLine(t, run.Stdout())
	eventually(t, "the run is known", func() bool { return exists(t, root.path(run.ID()), specFile) })
	agent, ok := proctree.LookUp(run.PID())
	if !ok {
		t.Fatal("no agent")
	}
	eventually(t, "standard error", func() bool { return run.StderrTail() == "two\n" })
	kill9(t, run.Info().Supervisor)
	await(t, "done", run.Done())
	eventually(t, "the agent is dead", func() bool { return !agent.Running() })
	if got := run.Exit(); got.Known {
		t.Errorf("%+v: that cannot be known", got)
	}
	if _, err := run.Stdout().Read(make([]byte, 1)); err == nil {
		t.Error("there is more to read")
	}
	if err := run.Err(); !errors.Is(err, ErrGone) {
		t.Errorf("%v", err)
	}
	if got := run.StderrTail(); got != "two\n" {
		t.Errorf("stderr %q", got)
	}
	info := root.look(t.Context(), run.ID())
	if info.Supervised || info.Alive || info.Problem != "" {
		t.Errorf("%+v", info)
	}
	again := attach(t, root, run.ID(), 0)
	if got := readAll(t, again.Stdout()); got != "one\n" {
		t.Errorf("%q is on disk", got)
	}
	if err := again.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := survivors(t, run.ID()); len(left) > 0 || exists(t, root.path(run.ID())) {
		t.Errorf("%v are still there", left)
	}
}

func TestTerminatedSupervisorEndsItsAgent(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	run := start(t, root, sh(threeDeep+`echo ready; sleep 600`))
	readLine(t, run.Stdout())
	if err := syscall.Kill(run.Info().Supervisor, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	await(t, "done", run.Done())
	if got := run.Exit(); got.By != ByTerminated || !got.Known {
		t.Errorf("%+v", got)
	}
	eventually(t, "the supervisor leaves", func() bool { return root.pool.reap() == 0 })
	if left := survivors(t, run.ID()); len(left) > 0 {
		t.Errorf("%v are still there", left)
	}
	if info := root.look(t.Context(), run.ID()); info.Status == nil || info.Status.By != ByTerminated {
		t.Errorf("on disk: %+v", info)
	}
}

func TestLimitsHoldWithNoClient(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limits Limits
		by     string
	}{
		"max age":  {Limits{MaxAge: 200 * time.Millisecond, OrphanAfter: -1, Grace: 50 * time.Millisecond, KeepResult: 1}, ByMaxAge},
		"orphaned": {Limits{OrphanAfter: 200 * time.Millisecond, Grace: 50 * time.Millisecond, KeepResult: 1}, ByOrphaned},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := openRoot(t, Options{})
			spec := helper(t, "family")
			spec.Limits = tc.limits
			run := start(t, root, spec)
			run.Detach()
			eventually(t, "the supervisor leaves", func() bool { return root.pool.reap() == 0 })
			if left := survivors(t, run.ID()); len(left) > 0 {
				t.Errorf("%v are still there", left)
			}
			if info := root.look(t.Context(), run.ID()); info.Status == nil || info.Status.By != tc.by || !info.Status.Known {
				t.Errorf("on disk: %+v", info)
			}
		})
	}
}

func TestLimitsCanBeChanged(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	spec := sh(`sleep 600`)
	spec.Limits.MaxAge = time.Hour
	run := start(t, root, spec)
	if err := run.Update(t.Context(), nil, &Limits{MaxAge: 100 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	await(t, "done", run.Done())
	if got := run.Exit(); got.By != ByMaxAge {
		t.Errorf("%+v", got)
	}
}

func TestLeftoversEndWhenNobodyIsThere(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	spec := sh(threeDeep + `exit 0`)
	spec.Limits.LeftoverAfter = 300 * time.Millisecond
	run := start(t, root, spec)
	await(t, "done", run.Done())
	if run.Status().Leftover == 0 {
		t.Fatal("nothing is left over: the test proves nothing")
	}
	run.Detach()
	eventually(t, "nothing is left", func() bool { return len(survivors(t, run.ID())) == 0 })
	if !root.look(t.Context(), run.ID()).Supervised {
		t.Error("the supervisor did not wait to be collected")
	}
}

func TestCollectEndsLeftovers(t *testing.T) {
	root := openRoot(t, Options{})
	run := start(t, root, sh(threeDeep+`read x; exit 0`))
	if err := run.Collect(t.Context()); err == nil {
		t.Fatal("a run was collected that still runs")
	}
	if err := run.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "done", run.Done())
	if err := run.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := survivors(t, run.ID()); len(left) > 0 {
		t.Errorf("%v are still there", left)
	}
	if _, err := os.Stat("/proc/" + strconv.Itoa(run.PID())); err == nil {
		t.Error("the agent was not reaped")
	}
	if err := root.Kill(t.Context(), run.ID()); err != nil { // it was there when somebody listed the runs
		t.Errorf("kill of a run that was collected: %v", err)
	}
}
