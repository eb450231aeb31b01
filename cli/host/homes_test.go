package host_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/host"
)

// owned creates an owner's home, and Homes with the given seeds.
func owned(t *testing.T, seeds func(owner string) []cli.HomeSeed) (owner, dir string, homes *host.Homes) {
	t.Helper()
	owner, dir = t.TempDir(), filepath.Join(t.TempDir(), "homes")
	homes, err := host.OpenHomes(host.HomesOptions{Dir: dir, Seeds: seeds(owner)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := homes.Close(); err != nil {
			t.Error(err)
		}
	})
	return owner, dir, homes
}

func home(t *testing.T, h *host.Homes, session string) string {
	t.Helper()
	dir, err := h.Home(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func plant(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// holds returns the content of a file; "-" if it does not exist.
func holds(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func simpleSeeds(owner string) []cli.HomeSeed {
	return []cli.HomeSeed{
		{From: filepath.Join(owner, "login"), To: ".agent/login", Link: true},
		{From: filepath.Join(owner, "copy"), To: "copy"},
		{To: "made", Pick: func([]byte) ([]byte, error) { return []byte("made"), nil }},
	}
}

func TestAHomeIsTheSessionsOwnAndNobodyElses(t *testing.T) {
	_, dir, homes := owned(t, simpleSeeds)
	one, two, odd := home(t, homes, "one"), home(t, homes, "two"), home(t, homes, "../../etc/passwd")
	if one != filepath.Join(dir, "one") || one == two || filepath.Dir(odd) != dir || home(t, homes, "one") != one {
		t.Errorf("homes %s, %s and %s", one, two, odd)
	}
	for _, path := range []string{dir, one, odd} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if _, err := homes.Home(t.Context(), ""); err == nil {
		t.Error("a session without a name has a home")
	}
}

func TestCopiesFollowTheOwnerAndElseAreTheAgents(t *testing.T) {
	owner, dir, homes := owned(t, simpleSeeds)
	in := filepath.Join(dir, "s")
	home(t, homes, "s")
	if holds(t, filepath.Join(in, "copy")) != "-" || holds(t, filepath.Join(in, "made")) != "made" {
		t.Error("what the owner does not have is there, or what is made is not")
	}
	plant(t, filepath.Join(owner, "copy"), "first")
	home(t, homes, "s")
	if got := holds(t, filepath.Join(in, "copy")); got != "first" {
		t.Errorf("copied %q", got)
	}
	plant(t, filepath.Join(in, "copy"), "the agent's")
	home(t, homes, "s")
	if got := holds(t, filepath.Join(in, "copy")); got != "the agent's" {
		t.Errorf("what the agent wrote became %q", got)
	}
	plant(t, filepath.Join(owner, "copy"), "second")
	home(t, homes, "s")
	if got := holds(t, filepath.Join(in, "copy")); got != "second" {
		t.Errorf("then copied %q", got)
	}
	if err := os.Remove(filepath.Join(owner, "copy")); err != nil {
		t.Fatal(err)
	}
	home(t, homes, "s")
	if got := holds(t, filepath.Join(in, "copy")); got != "-" {
		t.Errorf("the owner has it no more, and the home %q", got)
	}
}

// However an agent renews a log-in, the owner and every session get the new one.
func TestLogInsAreOne(t *testing.T) {
	renewals := map[string]func(t *testing.T, path string){
		"in place": func(t *testing.T, path string) { plant(t, path, "renewed") },
		"by renaming over the link": func(t *testing.T, path string) {
			plant(t, path+".tmp", "renewed")
			later := time.Now().Add(time.Minute)
			if err := errors.Join(os.Chtimes(path+".tmp", later, later), os.Rename(path+".tmp", path)); err != nil {
				t.Fatal(err)
			}
		},
		"by renaming over what the link leads to": func(t *testing.T, path string) {
			real, err := filepath.EvalSymlinks(path)
			if err != nil {
				t.Fatal(err)
			}
			plant(t, real+".tmp", "renewed")
			if err := os.Rename(real+".tmp", real); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, renew := range renewals {
		t.Run(name, func(t *testing.T) {
			owner, _, homes := owned(t, simpleSeeds)
			login := filepath.Join(owner, "login")
			plant(t, login, "old")
			one, two := home(t, homes, "one"), home(t, homes, "two")
			renew(t, filepath.Join(one, ".agent/login"))
			home(t, homes, "one")
			if got := []string{holds(t, login), holds(t, filepath.Join(one, ".agent/login")), holds(t, filepath.Join(two, ".agent/login"))}; !slices.Equal(got, []string{"renewed", "renewed", "renewed"}) {
				t.Errorf("the owner, this session and another have %q", got)
			}
			if info, err := os.Lstat(filepath.Join(one, ".agent/login")); err != nil || info.Mode().Type() != fs.ModeSymlink {
				t.Errorf("it is no link again: %v", err)
			}
			plant(t, login, "the owner's")
			if got := holds(t, filepath.Join(one, ".agent/login")); got != "the owner's" {
				t.Errorf("after the owner logged in anew the session has %q", got)
			}
			if err := os.Remove(login); err != nil {
				t.Fatal(err)
			}
			home(t, homes, "one")
			if _, err := os.Lstat(filepath.Join(one, ".agent/login")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the owner logged out, and the link is there: %v", err)
			}
		})
	}
}

// An older file in the place of a link is not the owner's new log-in.
func TestAnOldFileIsNotGivenBack(t *testing.T) {
	owner, _, homes := owned(t, simpleSeeds)
	login := filepath.Join(owner, "login")
	plant(t, login, "current")
	link := filepath.Join(home(t, homes, "s"), ".agent/login")
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	plant(t, link, "stale")
	before := time.Now().Add(-time.Hour)
	if err := os.Chtimes(link, before, before); err != nil {
		t.Fatal(err)
	}
	home(t, homes, "s")
	if holds(t, login) != "current" || holds(t, link) != "current" {
		t.Errorf("the owner has %q, the session %q", holds(t, login), holds(t, link))
	}
}

// If an agent replaces a directory by a link, nothing is written to the link's target.
func TestLinksLeadNowhere(t *testing.T) {
	for name, lead := range map[string]func(homes, in, out string) error{
		"in a home":    func(_, in, out string) error { return os.Symlink(out, filepath.Join(in, ".agent")) },
		"upwards":      func(_, in, _ string) error { return os.Symlink("../..", filepath.Join(in, ".agent")) },
		"for the home": func(homes, in, out string) error { return errors.Join(os.RemoveAll(in), os.Symlink(out, in)) },
		"for the notes": func(homes, _, out string) error {
			return errors.Join(os.RemoveAll(filepath.Join(homes, ".notes")), os.Symlink(out, filepath.Join(homes, ".notes")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			owner, dir, homes := owned(t, simpleSeeds)
			out := t.TempDir()
			in := home(t, homes, "s")
			if err := lead(dir, in, out); err != nil {
				t.Fatal(err)
			}
			plant(t, filepath.Join(owner, "login"), "secret")
			if _, err := homes.Home(t.Context(), "s"); err == nil {
				t.Error("the home was furnished through a link")
			}
			if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
				t.Errorf("%v was put where the link leads (%v)", left, err)
			}
			if up, err := filepath.Glob(filepath.Join(dir, "login")); err != nil || len(up) > 0 {
				t.Errorf("%v was put above the home (%v)", up, err)
			}
		})
	}
}

func TestHomesAreListedAndForgotten(t *testing.T) {
	owner := t.TempDir()
	plant(t, filepath.Join(owner, "login"), strings.Repeat("x", 1000))
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	homes, err := host.OpenHomes(host.HomesOptions{Dir: t.TempDir(), Seeds: simpleSeeds(owner), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer homes.Close()
	old := home(t, homes, "old session")
	plant(t, filepath.Join(old, "made"), "0123456789")
	now = now.Add(time.Hour)
	home(t, homes, "new")
	home(t, homes, "old session")
	now = now.Add(time.Hour)
	home(t, homes, "new")
	all, err := homes.List(t.Context())
	if err != nil || len(all) != 2 || all[0].Name != filepath.Base(old) || all[1].Name != "new" {
		t.Fatalf("homes %+v, %v", all, err)
	}
	if all[0].Bytes != 10 || !all[0].Used.Equal(now.Add(-time.Hour)) || !all[1].Used.Equal(now) {
		t.Errorf("homes %+v", all)
	}
	if err := errors.Join(homes.Forget(t.Context(), all[0].Name), homes.Forget(t.Context(), "never there")); err != nil {
		t.Fatal(err)
	}
	if all, err := homes.List(t.Context()); err != nil || len(all) != 1 || holds(t, filepath.Join(owner, "login")) == "-" {
		t.Errorf("left are %+v, %v, and the owner has %q", all, err, holds(t, filepath.Join(owner, "login")))
	}
	if dir := home(t, homes, "old session"); holds(t, filepath.Join(dir, "made")) != "made" {
		t.Error("a home that is made again is not seeded")
	}
}

func TestManyAskForHomesAtOnce(t *testing.T) {
	owner, _, homes := owned(t, simpleSeeds)
	plant(t, filepath.Join(owner, "login"), "in")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			session := []string{"a", "b", "c"}[i%3]
			dir, err := homes.Home(t.Context(), session)
			if err != nil || filepath.Base(dir) != session {
				t.Errorf("%s: %s, %v", session, dir, err)
			}
			if _, err := homes.List(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// Environments that do not see this host get plain files.
func TestCopiedSeeds(t *testing.T) {
	owner := t.TempDir()
	plant(t, filepath.Join(owner, "login"), "in")
	plant(t, filepath.Join(owner, "cache/big"), "big")
	seeds := append(simpleSeeds(owner), cli.HomeSeed{From: filepath.Join(owner, "cache"), To: "cache", Link: true})
	copied, err := host.CopiedSeeds(filepath.Join(t.TempDir(), "seeds"), seeds)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range copied {
		if s.Link || s.Pick != nil {
			t.Errorf("%s is no plain copy", s.To)
		}
		got[s.To] = holds(t, s.From)
	}
	if len(got) != 3 || got[".agent/login"] != "in" || got["copy"] != "-" || got["made"] != "made" {
		t.Errorf("copied %q", got)
	}
}

func TestAtHome(t *testing.T) {
	env := []string{"HOME=/home/me", "PATH=/bin", "XDG_CONFIG_HOME=/home/me/.config", "GIT_CONFIG_GLOBAL=/home/me/g", "AGENT_HOME=/home/me/.a", "TERM=dumb"}
	if got := cli.AtHome(env, ""); !slices.Equal(got, env) {
		t.Errorf("without a home of its own: %q", got)
	}
	if got := cli.AtHome(env, "/h", "AGENT_*"); !slices.Equal(got, []string{"HOME=/h", "PATH=/bin", "TERM=dumb"}) {
		t.Errorf("with one: %q", got)
	}
}

func TestPickEnv(t *testing.T) {
	file := "# keys\nA_KEY=1\r\nexport A_URL = x=y\nB_KEY=2\nnothing\n"
	if got := string(cli.PickEnv([]byte(file), "A_*")); got != "A_KEY=1\nexport A_URL = x=y\n" {
		t.Errorf("picked %q", got)
	}
}

func TestGitKnowsTheOwnerAndNothingElse(t *testing.T) {
	owner, _, homes := owned(t, host.GitSeeds)
	plant(t, filepath.Join(owner, ".gitconfig"), "[core]\n\thooksPath = /evil\n[User]\n\tName = Ann \"A\" Lee ; me\n\temail=ann@example.org\n\tsigningkey = X\n[alias]\n\tname = !sh\n")
	got := holds(t, filepath.Join(home(t, homes, "s"), ".gitconfig"))
	if got != "[user]\n\tname = Ann \"A\" Lee ; me\n\temail = ann@example.org\n" {
		t.Errorf("Git is told %q", got)
	}
}

func TestPlainJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": 1}`:                                    `{"a":1}`,
		"// first\n{\"a\": \"// no\", /* x */}":       `{"a":"// no"}`,
		`{"a": [1, 2, ], "b": "\"/*", // end` + "\n}": `{"a":[1,2],"b":"\"/*"}`,
		`{"a": ",}"}`:                                 `{"a":",}"}`,
	} {
		var v any
		if err := json.Unmarshal(cli.PlainJSON([]byte(in)), &v); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got, err := json.Marshal(v); err != nil || string(got) != want {
			t.Errorf("%s became %s (%v)", in, got, err)
		}
	}
}

// JSON keeps its meaning; other input does not cause a panic.
func FuzzPlainJSON(f *testing.F) {
	for _, seed := range []string{`{"a": "\\\"//"}`, `[1,]`, "/", "/*", `"`, `{"a":1}//`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		plain := cli.PlainJSON(raw)
		if !json.Valid(raw) {
			return
		}
		before, err := decodeJSON(raw)
		after, failure := decodeJSON(plain)
		if err := errors.Join(err, failure); err != nil {
			t.Fatalf("%s became %s: %v", raw, plain, err)
		}
		a, _ := json.Marshal(before)
		b, _ := json.Marshal(after)
		if string(a) != string(b) {
			t.Errorf("%s became %s", a, b)
		}
	})
}

// decodeJSON decodes any JSON. A number may be too large for a float64.
func decodeJSON(raw []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err = decoder.Decode(&value); err == nil && !json.Valid(raw) {
		err = errors.New("more follows the value")
	}
	return value, err
}
