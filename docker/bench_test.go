package docker

import (
	"bufio"
	"io"
	"slices"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/host"
)

// BenchmarkSandbox measures the start of a program in a warm container and on the host, and a round trip of a line.
func BenchmarkSandbox(b *testing.B) {
	o := testOptions(b, needEngine(b))
	inside := open(b, o)
	outside, err := host.Open(host.Options{Dir: b.TempDir(), Runner: clitest.Runner(b)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := outside.Close(); err != nil {
			b.Error(err)
		}
	})
	for name, l := range map[string]cli.Launcher{"container": inside, "host": outside} {
		cmd := cli.Command{Path: "sh", Args: []string{"-c", "echo; exec cat"}, Dir: o.Projects[0],
			Env: []string{"PATH=/usr/bin:/bin"}}
		b.Run(name+"/start", func(b *testing.B) { benchStart(b, l, cmd) })
		b.Run(name+"/line", func(b *testing.B) { benchLine(b, l, cmd) })
	}
}

var _ clitest.ClosingLauncher = (*Launcher)(nil)

func benchStart(b *testing.B, l cli.Launcher, cmd cli.Command) {
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		p, err := l.Start(b.Context(), cmd)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(p.Stdout(), make([]byte, 1)); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
		if err := p.Stop(b.Context(), time.Second); err != nil {
			b.Fatal(err)
		}
		time.Sleep(400 * time.Millisecond) // users do not start agents faster; by then the next spare is ready
	}
	reportMedian(b, took)
}

func benchLine(b *testing.B, l cli.Launcher, cmd cli.Command) {
	p, err := l.Start(b.Context(), cmd)
	if err != nil {
		b.Fatal(err)
	}
	out := bufio.NewReader(p.Stdout())
	if _, err := out.ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := io.WriteString(p.Stdin(),
			"a line of some length, as agents print them all day long\n"); err != nil {
			b.Fatal(err)
		}
		if _, err := out.ReadString('\n'); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	reportMedian(b, took)
	if err := p.Stop(b.Context(), 0); err != nil {
		b.Error(err)
	}
}

func reportMedian(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds()), "p95-µs")
}
