package config

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/bot/card"
	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/orchestrator"
)

var update = flag.Bool("update", false, "write the golden files anew")

const token = "123456789:AAExample-token_for-tests0000000000"

// environment is one with a home and the given variables.
func environment(vars map[string]string) Environment {
	return Environment{Getenv: func(name string) string {
		if v, ok := vars[name]; ok {
			return v
		}
		return map[string]string{"HOME": "/home/ada"}[name]
	}}
}

func write(t testing.TB, mode fs.FileMode, text string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "config.toml")
	if err := errors.Join(os.Chmod(dir, 0o700), os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// load loads a text that has to be valid.
func load(t *testing.T, text string, vars map[string]string) Config {
	t.Helper()
	c, err := LoadFrom(write(t, 0o600, text), environment(vars))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestErrors loads testdata/errors/*/config.toml and compares all it says with want.txt beside it.
// Run with -update after a change of the wording, and read the difference.
func TestErrors(t *testing.T) {
	dirs, err := filepath.Glob("testdata/errors/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(dir, "config.toml"))
			if err != nil {
				t.Fatal(err)
			}
			wanted, err := filepath.Abs(filepath.Join(dir, "want.txt"))
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(filepath.Dir(write(t, 0o600, string(text))))
			_, err = LoadFrom("config.toml", environment(nil))
			var invalid *Invalid
			if !errors.As(err, &invalid) {
				t.Fatalf("got %v, want *Invalid", err)
			}
			got := err.Error() + "\n"
			if *update {
				if err := os.WriteFile(wanted, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(wanted)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if strings.Count(got, "\n") != len(invalid.Problems) {
				t.Errorf("%d problems do not have a line each:\n%s", len(invalid.Problems), got)
			}
			if strings.Contains(got, "AAExample") || strings.Contains(got, "hunter2") {
				t.Error("a secret is shown")
			}
		})
	}
}

func TestLoadReadsEveryKindOfValue(t *testing.T) {
	c := load(t, `
		telegram = { token = "`+token+`", allowed_users = [7, 8], reactions = false }
		stream.interval_private = "1m"
		stream.footer = []
		rate.private_per_second = 0.5
		rate.group_per_minute = 5
		[agents.codex]
		sandbox = "read-only"
		env = ["AWS_*"]
		[roles."in doubt"]
		prompt = """
Ask."""
		append = false
		agent = "codex"
		[roles.plain]
		prompt = "x"
		[sessions]
		default_role = "in doubt"
	`, nil)
	want := Default()
	want.Telegram.Token, want.Telegram.AllowedUsers, want.Telegram.Reactions = token, []int64{7, 8}, false
	want.Stream.IntervalPrivate, want.Stream.Footer = time.Minute, []card.FooterField{}
	want.Rate.PrivatePerSecond, want.Rate.GroupPerMinute = 0.5, 5
	want.Agents.Codex.Sandbox, want.Agents.Codex.Env = "read-only", []string{"AWS_*"}
	want.Roles = map[string]orchestrator.Role{"in doubt": {Prompt: "Ask.", Agent: "codex", Tools: tableOf[cli.ToolList](), Bounds: tableOf[orchestrator.Bounds]()}, "plain": {Prompt: "x", Append: true, Tools: tableOf[cli.ToolList](), Bounds: tableOf[orchestrator.Bounds]()}}
	want.Sessions.DefaultRole = "in doubt"
	want.Storage.Dir, want.Projects.Roots, want.Projects.DefaultDir =
		"/home/ada/.local/state/ductor", []string{"/home/ada/ductor"}, "/home/ada/ductor"
	want.File = c.File
	if d := cmp.Diff(want, c); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestLoadOfAMissingFileSaysWhatToDo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.toml")
	_, err := Load(path)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "ductor setup") || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

func TestLoadPassesOverAByteOrderMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	text := "\xef\xbb\xbf[telegram]\r\ntoken = '123456789:AAExample-token_for-tests0000000000'\r\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(path); err != nil || c.Telegram.Token == "" {
		t.Errorf("got %v", err)
	}
	if _, draft, err := Draft(path, OSEnvironment()); err != nil || string(draft) != text[3:] {
		t.Errorf("the draft is %q, %v", draft, err)
	}
}

func TestLoadRefusesWhatIsNoFile(t *testing.T) {
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a directory was loaded")
	}
	if _, err := Load(write(t, 0o600, strings.Repeat("#", maxFile+1))); err == nil {
		t.Error("a file without end was loaded")
	}
}

func TestTokenComesFromOnePlace(t *testing.T) {
	const other = "987654321:AAAnother-token_for-tests000000000"
	file := write(t, 0o600, " "+other+"\n")
	empty := write(t, 0o600, "\n")
	inFile := `telegram.token = "` + token + `"`
	byName := func(path string) string { return fmt.Sprintf("telegram.token_file = %q", path) }
	for name, c := range map[string]struct {
		text, env string
		want      secrets.Value
		says      string
	}{
		"the file":                         {inFile, "", token, ""},
		"the environment":                  {"", token, token, ""},
		"the environment wins over both":   {inFile + "\n" + byName("/nowhere"), other, other, ""},
		"a file of its own":                {byName(file), "", other, ""},
		"nowhere":                          {"", "", "", "telegram.token: there is no bot token"},
		"both in the file and in its own":  {inFile + "\n" + byName(file), "", "", "telegram.token_file: token is set as well"},
		"a file that is not there":         {byName("/nowhere"), "", "", "telegram.token_file: cannot be read"},
		"a file that is empty":             {byName(empty), "", "", "telegram.token_file: " + empty + " is empty"},
		"an environment without any sense": {"", "password", "", "telegram.token: this is not a bot token"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := LoadFrom(write(t, 0o600, c.text), environment(map[string]string{TokenVariable: c.env}))
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got error %v, want %q", err, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("one mistake makes several lines:\n%v", err)
			}
			if got.Telegram.Token.Reveal() != c.want.Reveal() {
				t.Errorf("got token %q", got.Telegram.Token.Reveal())
			}
		})
	}
}

func TestPaths(t *testing.T) {
	const text = "telegram.token = \"" + token + "\"\n"
	home := map[string]string{}
	for name, c := range map[string]struct {
		text string
		vars map[string]string
		want func(Config) string
		is   string
	}{
		"storage where the system says": {"", map[string]string{"XDG_STATE_HOME": "/state"},
			func(c Config) string { return c.Storage.Dir }, "/state/ductor"},
		"storage where the owner says": {`storage.dir = "~/ductor/../d"`, home, func(c Config) string { return c.Storage.Dir }, "/home/ada/d"},
		"a relative state directory":   {"", map[string]string{"XDG_STATE_HOME": "x"}, func(c Config) string { return c.Storage.Dir }, "/home/ada/.local/state/ductor"},
		"the first root to work in":    {`projects.roots = ["/srv/a", "/srv/b"]`, home, func(c Config) string { return c.Projects.DefaultDir }, "/srv/a"},
		"a directory inside a root": {"[projects]\nroots = [\"/srv/a\", \"~\"]\ndefault_dir = \"~/x/\"", home,
			func(c Config) string { return c.Projects.DefaultDir }, "/home/ada/x"},
		"a program":                 {`agents.claude.path = "/opt//claude"`, home, func(c Config) string { return c.Agents.Claude.Path }, "/opt/claude"},
		"Gemini in the home":        {`agents.gemini.path = "~/bin/gemini"`, home, func(c Config) string { return c.Agents.Gemini.Path }, "/home/ada/bin/gemini"},
		"Copilot in the home":       {`agents.copilot.path = "~/bin/copilot"`, home, func(c Config) string { return c.Agents.Copilot.Path }, "/home/ada/bin/copilot"},
		"a program by its name":     {`agents.gemini.path = "gemini-nightly"`, home, func(c Config) string { return c.Agents.Gemini.Path }, "gemini-nightly"},
		"another agent in the home": {`agents.acp.goose.path = "~/bin/goose"`, home, func(c Config) string { return c.Agents.ACP["goose"].Path }, "/home/ada/bin/goose"},
		"what hears in the home": {`voice.command = ["~/whisper", "~/model"]`, home,
			func(c Config) string { return strings.Join(c.Voice.Command, " ") }, "/home/ada/whisper /home/ada/model"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.want(load(t, text+c.text, c.vars)); got != c.is {
				t.Errorf("got %q, want %q", got, c.is)
			}
		})
	}
	_, err := LoadFrom(write(t, 0o600, text), environment(map[string]string{"HOME": ""}))
	if err == nil || !strings.Contains(err.Error(), "needs the variable HOME") {
		t.Errorf("without a home: %v", err)
	}
}

func TestWarnings(t *testing.T) {
	const allowed = "telegram.allowed_users = [7]\n"
	withToken := "telegram.token = \"" + token + "\"\n"
	tokenFile := write(t, 0o640, token)
	for name, c := range map[string]struct {
		mode fs.FileMode
		text string
		env  string
		want string // part of the only warning; empty for none
	}{
		"all is well":                        {0o600, withToken + allowed, "", ""},
		"even more private":                  {0o400, withToken + allowed, "", ""},
		"others may read the token":          {0o644, withToken + allowed, "", "chmod 600"},
		"others may read, but what":          {0o644, allowed, token, ""},
		"others may read a proxy's password": {0o644, allowed + "telegram.proxy = \"http://ada:hunter2@proxy:3128\"", token, "chmod 600"},
		"others may read a hook's secret":    {0o644, allowed + "[webhooks.hooks.ci]\nprompt = \"look\"\nsecret = \"0123456789abcdef0123456789abcdef\"", token, "chmod 600"},
		"others may read the token's file":   {0o644, allowed + fmt.Sprintf("telegram.token_file = %q", tokenFile), "", "chmod 600 " + tokenFile},
		"no user is answered":                {0o600, withToken, "", "the bot answers no user"},
		"a listed group without people":      {0o600, withToken + "telegram.allowed_groups = [-1]", "", "the bot answers no user"},
		"a group of whoever":                 {0o600, withToken + "telegram.allowed_groups = [-1]\ntelegram.group_members = \"all\"", "", "lists no user"},
		"no encryption":                      {0o600, withToken + allowed + `telegram.api_base = "http://example.com"`, "", "not encrypted"},
		"no encryption on this machine":      {0o600, withToken + allowed + `telegram.api_base = "http://127.0.0.1:8081"`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := LoadFrom(write(t, c.mode, c.text), environment(map[string]string{TokenVariable: c.env}))
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" && len(got.Warnings) > 0 || c.want != "" && (len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], c.want)) {
				t.Errorf("got %q, want %q", got.Warnings, c.want)
			}
		})
	}
}

func TestSecretIsNeverShown(t *testing.T) {
	s := secrets.Value(token)
	nested := struct{ Inner Telegram }{Telegram{Token: s}}
	var shown []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%T %v"} {
		shown = append(shown, fmt.Sprintf(verb, s, s), fmt.Sprintf(verb, &s, s), fmt.Sprintf(verb, nested, nested), fmt.Sprintf(verb, []secrets.Value{s}, s))
	}
	encoded, err := json.Marshal(map[string]secrets.Value{"token": s})
	if err != nil {
		t.Fatal(err)
	}
	shown = append(shown, string(encoded), s.String(), fmt.Sprint(fmt.Errorf("x: %w, %v", errors.New("y"), s)))
	for _, format := range []func(*strings.Builder) slog.Handler{
		func(b *strings.Builder) slog.Handler { return slog.NewTextHandler(b, nil) },
		func(b *strings.Builder) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var b strings.Builder
		slog.New(format(&b)).Info("m", "token", s, "config", nested, "any", []any{s})
		shown = append(shown, b.String())
	}
	hexed := fmt.Sprintf("%x", token)
	for _, text := range shown {
		if strings.Contains(text, "AAExample") || strings.Contains(strings.ToLower(text), hexed[:20]) {
			t.Errorf("the token is shown: %s", text)
		}
	}
	if secrets.Value("").String() != "" || s.Reveal() != token {
		t.Error("an empty secret should show as empty, and Reveal should give the value")
	}
}

func TestSecrets(t *testing.T) {
	var c Config
	if got := c.Secrets(); len(got) != 0 {
		t.Errorf("an empty configuration has secrets %q", got)
	}
	c.Telegram.Token, c.Telegram.Proxy = token, "socks5://ada:hunter%402@proxy:1"
	want := []string{token, strings.Replace(token, ":", "%3A", 1), "hunter@2", "hunter%402"}
	if got := c.Secrets(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestValidate(t *testing.T) {
	c := Default()
	if err := validate(c); err == nil || err.Error() != "telegram.token: "+strings.TrimPrefix(err.Error(), "telegram.token: ") {
		t.Errorf("the defaults lack a token and nothing else: %v", err)
	}
	c.Telegram.Token = token
	if err := validate(c); err != nil {
		t.Errorf("the defaults with a token: %v", err)
	}
	c.Storage.Dir, c.Queue.Max = "relative", 0
	err := validate(c)
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.HasPrefix(err.Error(), "queue.max: ") {
		t.Errorf("two mistakes: %v", err)
	}
}

// TestOneKeyIsEnough holds that common changes need no second one to be valid.
func TestOneKeyIsEnough(t *testing.T) {
	for _, text := range []string{
		`agents.default = "codex"`, `agents.codex.enabled = false`, `projects.roots = ["/srv"]`,
		`sessions.daily_reset = "04:00"`, `permissions.mode = "bypass"`, `agents.fallback = []`,
	} {
		load(t, "telegram.token = \""+token+"\"\n"+text, nil)
	}
}

func FuzzLoad(f *testing.F) {
	example, err := os.ReadFile(examplePath)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	cases, err := filepath.Glob("testdata/errors/*/config.toml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range cases {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := build("config.toml", text, 0o600, environment(map[string]string{TokenVariable: token}))
		if err == nil {
			// What was loaded is valid in itself.
			if err := validate(c); err != nil {
				t.Errorf("loaded, but not valid: %v", err)
			}
			return
		}
		var invalid *Invalid
		if errors.As(err, &invalid) && len(invalid.Problems) != 1+strings.Count(err.Error(), "\n") {
			t.Errorf("%d problems are not a line each: %q", len(invalid.Problems), err)
		}
	})
}

// validate checks a Config that no file was read for.
func validate(c Config) error {
	found := c.check()
	visit(setting{value: reflect.ValueOf(&c).Elem()}, func(s setting) { found.expand(s, "") })
	return found.asError("")
}

func TestTheZoneOfTheChat(t *testing.T) {
	for zone, valid := range map[string]bool{
		"": true, "Europe/Paris": true, "UTC": true, "Local": false, "Paris": false, "../zone": false,
	} {
		var found []string
		Telegram{Zone: zone}.Check(func(key, format string, args ...any) { found = append(found, key) })
		if at, err := (Telegram{Zone: zone}).Location(); (err == nil && len(found) == 0) != valid ||
			valid && zone != "" && at.String() != zone {
			t.Errorf("%q: %v, %v, mistakes of %v", zone, at, err, found)
		}
	}
}
