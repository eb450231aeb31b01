package gemini

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/gemini/guard"
)

// remote is a launcher for a place that does not share this machine's files.
type remote struct {
	cli.Launcher
	errands [][]string
	err     error
}

func (r *remote) Help(_ context.Context, env []string, args ...string) ([]byte, error) {
	r.errands = append(r.errands, append([]string{cli.Variable(env, "HOME")}, args...))
	return nil, r.err
}

// If Gemini's files are elsewhere, they are guarded there before Gemini starts. If that is impossible, Gemini does not
// start.
func TestSessionsElsewhereAreGuardedThere(t *testing.T) {
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		far := &remote{err: errors.New("the container is gone")}
		p, dir := scripted(t, func(o *Options) { far.Launcher, o.Launcher = o.Launcher, far })
		req := cli.Request{Dir: dir, Project: cli.EmptyProject, Home: t.TempDir(), Resume: "0123abcd-89ab", Prompt: "hello", Permission: cli.Bypass}
		s, err := p.Open(t.Context(), mode, req)
		if err == nil { // one-shot starts with the turn
			r, _ := clitest.Play(t.Context(), s, req)
			if err = s.Close(t.Context()); r.Err != nil {
				err = errors.Join(err, r.Err)
			}
		}
		if !errors.Is(err, far.err) {
			t.Errorf("%s: it was started: %v", mode, err)
		}
		if want := [][]string{{req.Home, guard.Verb, "0123abcd-89ab"}}; !reflect.DeepEqual(far.errands, want) {
			t.Errorf("%s: the errands are %q, want %q", mode, far.errands, want)
		}
	}
}
