package app

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/bot/checks"
	"ductor/cli"
	"ductor/cli/acp"
	"ductor/cli/gemini"
	"ductor/internal/config"
)

// startsIn records the directories in which processes are to start, and starts none.
type startsIn struct {
	cli.Launcher
	dirs []string
}

func (*startsIn) LookPath(name string) (string, error) { return "/bin/" + name, nil }

func (l *startsIn) Start(_ context.Context, c cli.Command) (cli.Process, error) {
	l.dirs = append(l.dirs, c.Dir)
	return nil, errors.New("nothing starts here")
}

// TestAgentsAreProbedInTheStateDirectory tests that ductor starts ACP agents in a directory of its own to ask for the
// log-in, on this machine and in a sandbox. Settings that others create in /tmp then do not count. To serve a session,
// an agent starts in the project.
func TestAgentsAreProbedInTheStateDirectory(t *testing.T) {
	cfg := config.Default()
	cfg.Storage.Dir = t.TempDir()
	cfg.Agents.ACP = map[string]acp.Settings{"codex-acp": {Enabled: true, Path: "codex-acp"}}
	a := agents{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	for _, inside := range []bool{false, true} {
		l := &startsIn{}
		provider := a.provider(runEnv{launcher: l, inside: inside}, "codex-acp", cli.AccountHome{})
		if auth := provider.Auth(t.Context()); auth.State != cli.Installed {
			t.Errorf("its log-in is %+v", auth)
		}
		gemini := a.provider(runEnv{launcher: l, inside: inside}, gemini.Agent, cli.AccountHome{})
		project := t.TempDir()
		for _, p := range []cli.Provider{provider, gemini} {
			req := cli.Request{Dir: project, Permission: cli.Auto}
			if _, err := p.Open(t.Context(), cli.Live, req); err == nil {
				t.Errorf("%s has a session", p.Agent())
			}
		}
		want := []string{filepath.Join(cfg.Storage.Dir, "probes"), project, project}
		if !slices.Equal(l.dirs, want) {
			t.Errorf("in a sandbox: %v, they start in %q, want %q", inside, l.dirs, want)
		}
	}
}

// TestTheDoctorReadsTheFile tests that /doctor gets the mistakes in the configuration file, and its unused changes.
func TestTheDoctorReadsTheFile(t *testing.T) {
	r := newReloadRig(t)
	var got Examined
	r.Examine = func(_ context.Context, e Examined) checks.Report {
		got = e
		return checks.Report{}
	}
	for row, want := range map[string]struct{ mistake, change string }{
		"":                                   {},
		`permissions.mode = "asc"`:           {mistake: `did you mean "ask"?`},
		`jobs.noon.schedule = "whenever"`:    {mistake: "jobs.noon.schedule: "},
		`permissions.denied_tools = ["mcp"]`: {mistake: "permissions.denied_tools: "},
		`queue.max = 3`:                      {change: "queue.max"},
	} {
		before := r.now()
		r.write(row)
		r.examiner()(t.Context())
		if want.mistake == "" && got.Mistakes != nil ||
			want.mistake != "" && (got.Mistakes == nil || !strings.Contains(got.Mistakes.Error(), want.mistake)) {
			t.Errorf("%s: the mistakes are %v", row, got.Mistakes)
		}
		if got.Mistakes == nil && (want.change == "" && len(got.Changes) > 0 ||
			want.change != "" && (len(got.Changes) != 1 || got.Changes[0].Key != want.change)) {
			t.Errorf("%s: the changes are %+v", row, got.Changes)
		}
		if r.now() != before {
			t.Errorf("%s counts", row)
		}
	}
}
