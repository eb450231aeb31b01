package doctor

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/config"
)

// waiter is an agent that says how it is once all of its like were asked.
type waiter struct {
	cli.Provider // nil: nothing else is called
	name         cli.Agent
	asked        *sync.WaitGroup
}

func (w waiter) Agent() cli.Agent  { return w.name }
func (w waiter) Modes() []cli.Mode { return []cli.Mode{cli.Live} }

func (w waiter) Auth(ctx context.Context) cli.Auth {
	w.asked.Done()
	all := make(chan struct{})
	go func() { w.asked.Wait(); close(all) }()
	select {
	case <-all:
		return cli.Auth{State: cli.Authenticated, Path: "/bin/" + string(w.name), Version: "1", Method: "a key"}
	case <-ctx.Done():
		return cli.Auth{State: cli.NotFound}
	}
}

// The doctor asks all agents at the same time, and tells of them in order.
func TestTheDoctorAsksAllAgentsAtOnce(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var asked sync.WaitGroup
	var providers []cli.Provider
	var want strings.Builder
	for _, name := range []cli.Agent{"one", "two", "three"} {
		asked.Add(1)
		providers = append(providers, waiter{name: name, asked: &asked})
		want.WriteString("ok   agent " + string(name) + ": /bin/" + string(name) + " 1, logged in by a key, live\n")
	}
	var d doctor
	n := d.judge(ctx, config.Default(), providers, "")
	var out bytes.Buffer
	if err := d.found.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	if n != 3 || out.String() != want.String() {
		t.Errorf("%d can be used:\n%s\nwant\n%s", n, out.String(), want.String())
	}
}
