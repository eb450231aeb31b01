package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

// atTerminal is a program on a pseudo-terminal.
type atTerminal struct {
	t    testing.TB
	cmd  *exec.Cmd
	tty  *os.File
	done chan struct{}

	screen vt10x.Terminal

	mu    sync.Mutex
	shown []byte
	read  int // end of the last awaited text
}

func startAtTerminal(t testing.TB, args ...string) *atTerminal {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), beDuctor+"=1", "GORACE=atexit_sleep_ms=0")
	return startCommand(t, cmd)
}

// startCommand starts a program at a pseudo-terminal.
func startCommand(t testing.TB, cmd *exec.Cmd) *atTerminal {
	t.Helper()
	return startCommandIn(t, cmd, 160, 50)
}

func startCommandIn(t testing.TB, cmd *exec.Cmd, columns, rows int) *atTerminal {
	t.Helper()
	a := &atTerminal{t: t, cmd: cmd, done: make(chan struct{}), screen: vt10x.New(vt10x.WithSize(columns, rows))}
	var err error
	if a.tty, err = pty.StartWithSize(a.cmd, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(a.done)
		for buf := make([]byte, 4096); ; {
			n, err := a.tty.Read(buf)
			a.mu.Lock()
			a.shown = append(a.shown, buf[:n]...)
			a.mu.Unlock()
			_, _ = a.screen.Write(buf[:n])
			if err != nil {
				return // the program ended
			}
		}
	}()
	t.Cleanup(func() {
		_ = a.cmd.Process.Kill()
		_ = a.cmd.Wait()
		_ = a.tty.Close()
		<-a.done
	})
	return a
}

// text returns everything that was shown.
func (a *atTerminal) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return string(bytes.ReplaceAll(a.shown, []byte("\r"), nil))
}

// await waits for a text after the last awaited one, and types an answer.
func (a *atTerminal) await(part, answer string) {
	a.t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if i := strings.Index(a.text()[a.read:], part); i >= 0 {
			a.read += i + len(part)
			break
		}
		if time.Now().After(until) {
			a.t.Fatalf("%q is not shown:\n%s", part, a.text())
		}
	}
	if _, err := a.tty.WriteString(answer); err != nil {
		a.t.Fatal(err)
	}
}

// exit waits for the end and returns the exit code.
func (a *atTerminal) exit() int {
	a.t.Helper()
	select {
	case <-a.done:
	case <-time.After(patience):
		a.t.Fatalf("it does not end:\n%s", a.text())
	}
	_ = a.cmd.Wait() // the exit code is checked instead
	return a.cmd.ProcessState.ExitCode()
}

// freshUser returns a user of this machine without a ductor, but with agents.
func freshUser(t *testing.T) (town *town, config string) {
	town = surroundings(t, nil)
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "DUCTOR_CONFIG"} {
		t.Setenv(name, "")
	}
	t.Setenv("PATH", filepath.Dir(town.cfg.Agents.Claude.Path)+":"+os.Getenv("PATH"))
	town.cfg.Storage.Dir = filepath.Join(home, ".local/state/ductor")
	t.Cleanup(town.endRuns)
	return town, filepath.Join(home, ".config/ductor/config.toml")
}

// A new user answers setup's questions at a terminal, sends the code to the bot, and has a working bot.
func TestASetupAtATerminal(t *testing.T) {
	town, config := freshUser(t)
	programs := t.TempDir()
	for name, script := range map[string]string{
		"systemctl": "#!/bin/sh\n", "opencode": protocolStub, "kilo": protocolStub,
	} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	setup := startAtTerminal(t, "setup", "--api-base", town.srv.URL())
	setup.await("Nothing is written before you have seen it", "")
	setup.await("send /newbot", "")
	setup.await("token from @BotFather", "123456789:AAExample-token_for-tests0000000000\n")
	setup.await("Telegram does not know this token", "")
	setup.await("token from @BotFather", town.srv.Token()+"\n")
	setup.await("The bot is @", "")
	setup.await("or send this code to", "")
	setup.await(": ", "")
	code := regexp.MustCompile(`\?start=([A-Z2-7]{12})`).FindStringSubmatch(setup.text())
	if code == nil {
		t.Fatalf("there is no code:\n%s", setup.text())
	}
	guesser := town.srv.Private(stranger, "Stranger")
	guesser.Person().Send(guesser, "/start AAAAAAAAAAAA")
	guesser.Person().Send(guesser, "AAAAAAAAAAAB")
	town.chat.Person().Send(town.chat, "/start "+code[1])
	setup.await("You are Owner, user 1.", "")
	if m := town.await("Connected"); strings.Contains(m.Text, "/model") {
		t.Errorf("the bot greets before anything answers: %s", m.Text)
	}
	project := filepath.Join(t.TempDir(), "my project")
	setup.await("The directory that agents work in", project+"\n")
	setup.await("Where agents run", "\n")
	setup.await("Kilo is installed here (kilo). Use it too?", "no\n")
	setup.await("OpenCode is installed here (opencode). Use it too?", "\n")
	setup.await("claude: ", "")
	setup.await("opencode: ", "")
	setup.await("The agent for new chats", "codex\n")
	setup.await("Write this?", "maybe\n")
	setup.await("Please answer yes or no.", "")
	setup.await("Write this?", "\n")
	setup.await(config+" is written.", "")
	setup.await("ok   Telegram: serves @", "")
	setup.await("Run ductor as a service, now and at every boot?", "maybe\n")
	setup.await("Please answer yes or no.", "\n")
	setup.await("Start ductor with:", "")
	if code := setup.exit(); code != 0 {
		t.Errorf("exit %d:\n%s", code, setup.text())
	}
	_, start, _ := strings.Cut(setup.text(), "Start ductor with:")
	words := strings.Fields(start)
	if _, err := exec.LookPath(words[0]); err != nil || words[1] != "run" || words[2] == "-c" {
		t.Errorf("the last words are no command that works here: %v, %q", err, start)
	}
	if strings.Contains(setup.text(), town.srv.Token()) ||
		!strings.Contains(setup.text(), `token = '[secret removed]'`) {
		t.Errorf("the token is shown, or not said to be there:\n%s", setup.text())
	}
	if info, err := os.Stat(config); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the configuration: %v, %v", info, err)
	}
	if text := readFile(t, config); !strings.Contains(text, "[agents.acp.opencode]") || strings.Contains(text, "kilo") {
		t.Errorf("the agents that were chosen are not those of\n%s", text)
	}
	if n := len(guesser.View().FromBot()); n != 0 {
		t.Errorf("the stranger got %d answers", n)
	}

	up := town.strikeAtStart()
	startDaemon(t, "run")
	<-up
	town.say(`[[start]] [[text "my first answer"]]`)
	town.await("my first answer")
	if n := len(guesser.View().FromBot()); n != 0 {
		t.Errorf("the stranger got %d answers", n)
	}
}

// Setup repeats the question after an invalid answer. If it is interrupted, it says that it changed nothing, and that
// is true.
func TestASetupThatIsInterrupted(t *testing.T) {
	town, config := freshUser(t)
	project := filepath.Join(t.TempDir(), "project")
	setup := startAtTerminal(t, "setup", "--api-base", town.srv.URL(), "--owner", "1")
	setup.await("token from @BotFather", town.srv.Token()+"\n")
	setup.await("The directory that agents work in", project+"\n")
	setup.await("Where agents run", "doker\n")
	setup.await(`the sandbox is off or docker, not "doker".`, "")
	setup.await("Where agents run", "\n")
	setup.await("The agent for new chats", "claud\n")
	setup.await(`there is no agent "claud".`, "")
	setup.await("The agent for new chats", "claude\n")
	setup.await("Write this?", "\x03")
	setup.await("ductor: stopped; nothing was written", "")
	if code := setup.exit(); code != exitFailure || strings.Contains(setup.text(), "context canceled") {
		t.Errorf("exit %d:\n%s", code, setup.text())
	}
	for _, path := range []string{project, config} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", path, err)
		}
	}
}

// Without a network, setup says so and tries again, or uses a proxy, which it writes to the configuration.
func TestASetupWithoutANetwork(t *testing.T) {
	town, config := freshUser(t)
	closed := httptest.NewServer(nil)
	closed.Close()
	behind, err := url.Parse(town.srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(httputil.NewSingleHostReverseProxy(behind))
	t.Cleanup(proxy.Close)
	t.Setenv("DUCTOR_TELEGRAM_TOKEN", town.srv.Token())
	setup := startAtTerminal(t, "setup", "--api-base", closed.URL, "--owner", "1")
	setup.await("Telegram cannot be reached", "")
	setup.await("Enter tries again", "\n")
	setup.await("Enter tries again", proxy.URL+"\n")
	setup.await("The bot is @", "")
	setup.await("The directory that agents work in", t.TempDir()+"\n")
	setup.await("Where agents run", "\n")
	setup.await("The agent for new chats", "\n")
	setup.await("Write this?", "yes\n")
	setup.await(config+" is written.", "")
	if text, err := os.ReadFile(config); err != nil || !strings.Contains(string(text), "proxy = '"+proxy.URL) ||
		strings.Contains(setup.text(), "dial tcp") {
		t.Errorf("%v\n%s\n%s", err, text, setup.text())
	}
	code, stdout, stderr := runDuctor(t, "setup", "--yes", "--api-base", closed.URL, "--owner", "1", "-c",
		config+".new")
	if code != exitFailure || !strings.Contains(stdout+stderr, "Telegram cannot be reached") ||
		strings.Contains(stdout+stderr, "dial tcp") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

// Setup does not offer containers without an engine.
func TestASetupWithoutAnEngine(t *testing.T) {
	town, config := freshUser(t)
	if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
		t.Fatal(err)
	}
	const host = "[sandbox]\nhost = 'unix:///nowhere/docker.sock'\n"
	if err := os.WriteFile(config, []byte(host), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DUCTOR_TELEGRAM_TOKEN", town.srv.Token())
	args := []string{"setup", "--api-base", town.srv.URL(), "--owner", "1", "--project", t.TempDir()}
	setup := startAtTerminal(t, args...)
	setup.await("Where agents run", "docker\n")
	setup.await("no container engine answers here", "")
	setup.await("Where agents run", "off\n")
	setup.await("The agent for new chats", "\x03")
	setup.exit()
	code, _, stderr := runDuctor(t, append(args, "--yes", "--sandbox", "docker")...)
	if text, err := os.ReadFile(config); code != exitFailure ||
		!strings.Contains(stderr, "no container engine answers") || err != nil || string(text) != host {
		t.Errorf("exit %d, %v: %s\n%s", code, err, stderr, text)
	}
}

// If setup's check fails, it prints the next steps, with commands that work here.
func TestASetupWithoutAnAgent(t *testing.T) {
	town, config := freshUser(t)
	t.Setenv("PATH", "/usr/bin:/bin")
	t.Setenv("DUCTOR_TELEGRAM_TOKEN", town.srv.Token())
	code, stdout, stderr := runDuctor(t, "setup", "--yes", "--owner", "1", "--api-base", town.srv.URL(), "--project",
		t.TempDir())
	if _, err := os.Stat(config); code == 0 || err != nil || !strings.Contains(stderr, "one check failed") {
		t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	_, next, _ := strings.Cut(stdout, "look again with:")
	line, _, _ := strings.Cut(next, "\n")
	words := strings.Fields(line) // with "go run ./cmd/ductor" where go test has built this program
	if len(words) < 2 || words[len(words)-1] != "doctor" {
		t.Fatalf("it does not say what to do next: %s", stdout)
	}
	// This program runs the test, and need not be in PATH.
	if _, err := exec.LookPath(words[0]); err != nil && words[0] != "go" {
		t.Errorf("%s cannot be called here: %v", words[0], err)
	}
}

// Without systemd, no unit is written, and the error says so in a sentence.
func TestNoServiceWithoutSystemd(t *testing.T) {
	town, _ := freshUser(t)
	programs := t.TempDir()
	script := "#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(programs, "systemctl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	config := town.writeConfig()
	for _, args := range [][]string{{"service", "install", "--yes", "-c", config}, {"service", "status"}} {
		code, stdout, stderr := runDuctor(t, args...)
		if code != exitFailure || !strings.Contains(stderr, "systemd is not running here") ||
			strings.Contains(stdout+stderr, "bus") {
			t.Errorf("%v: exit %d: %s%s", args, code, stdout, stderr)
		}
	}
	if left, err := filepath.Glob(filepath.Join(os.Getenv("HOME"), ".config/systemd/user/*")); err != nil ||
		len(left) > 0 {
		t.Errorf("%v is written, %v", left, err)
	}
}

// An invalid address of a Bot API server is rejected before the first question.
func TestASetupWithAWrongAddress(t *testing.T) {
	_, config := freshUser(t)
	for _, base := range []string{"http:/x", "localhost:8081", "ftp://example.org"} {
		want := "should be a URL such as https://api.telegram.org, not \"" + base + "\""
		if code, _, stderr := runDuctor(t, "setup", "--api-base", base, "-c", config); code != exitFailure ||
			!strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d: %s", base, code, stderr)
		}
	}
}

// A repeated setup without a terminal changes only the given settings. An invalid value changes nothing.
func TestASetupWithAWrongToken(t *testing.T) {
	town, config := freshUser(t)
	t.Setenv("DUCTOR_TELEGRAM_TOKEN", "424242:wrong")
	code, stdout, stderr := runDuctor(t, "setup", "--yes", "--api-base", town.srv.URL(), "-c", config)
	if code != exitFailure || !strings.Contains(stdout+stderr, "@BotFather shows it") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

func TestASetupWithoutATerminal(t *testing.T) {
	_, config := freshUser(t)
	if code, _, stderr := runDuctor(t, "setup", "-c", config); code != exitFailure ||
		!strings.Contains(stderr, "run this in a terminal") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestASetupThatIsRunAgain(t *testing.T) {
	town, config := freshUser(t)
	project := t.TempDir()
	t.Setenv("DUCTOR_TELEGRAM_TOKEN", town.srv.Token())
	t.Setenv("DUCTOR_OWNER", "1")
	args := []string{"setup", "--yes", "--api-base", town.srv.URL(), "--project", project}
	if code, stdout, stderr := runDuctor(t, args...); code != 0 {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	text, err := os.ReadFile(config)
	if err != nil || !bytes.Contains(text, []byte(town.srv.Token())) {
		t.Fatalf("%s: %v", text, err)
	}
	own := append([]byte("# my own words\n"), append(text, "\n[queue] # mine\nmax = 3 # three\n"...)...)
	if err := os.WriteFile(config, own, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := runDuctor(t, args...); code != 0 || !strings.Contains(stdout, "stays as it is") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	t.Setenv("DUCTOR_OWNER", "2")
	if code, stdout, stderr := runDuctor(t, append(args, "--model", "codex/gpt-5")...); code != 0 {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	now, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# my own words\n", "[queue] # mine\nmax = 3 # three\n", "allowed_users = [2, 1]",
		"default = 'codex'", "model = 'gpt-5'"} {
		if !bytes.Contains(now, []byte(want)) {
			t.Errorf("there is no %q in\n%s", want, now)
		}
	}
	for name, wrong := range map[string]struct {
		args []string
		want string
	}{
		"an agent": {[]string{"--model", "clod"}, `there is no agent "clod"`},
		"a box":    {[]string{"--sandbox", "podman"}, "off or docker"},
		"a user":   {[]string{"--owner", "@ada"}, "is no id of a user"},
	} {
		code, _, stderr := runDuctor(t, append(args, wrong.args...)...)
		if after, err := os.ReadFile(config); code == 0 || !strings.Contains(stderr, wrong.want) || err != nil ||
			!bytes.Equal(after, now) {
			t.Errorf("%s: exit %d, %v: %s\n%s", name, code, err, stderr, after)
		}
	}
	broken := append(bytes.Clone(now), "\n[queue\n"...)
	if err := os.WriteFile(config, broken, 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := runDuctor(t, args...)
	if after, err := os.ReadFile(config); code == 0 || !strings.Contains(stderr, "this is not TOML") || err != nil ||
		!bytes.Equal(after, broken) {
		t.Errorf("a broken file: exit %d, %v: %s", code, err, stderr)
	}
}

// With --service, setup installs ductor as a service with the configuration that it wrote.
func TestASetupInstallsTheService(t *testing.T) {
	town, config := freshUser(t)
	programs, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	if err := os.WriteFile(filepath.Join(programs, "systemctl"), []byte("#!/bin/sh\necho \"$*\" >> "+calls+"\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	t.Setenv("DUCTOR_TELEGRAM_TOKEN", town.srv.Token())
	code, stdout, stderr := runDuctor(t, "setup", "--yes", "--service", "--owner", "1", "--api-base", town.srv.URL(),
		"--project", t.TempDir())
	if code != 0 || !strings.Contains(stdout, "the service is installed and started") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	unit, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(config)), "systemd", "user", "ductor.service"))
	if err != nil || !strings.Contains(string(unit), config) {
		t.Errorf("the unit is %q, %v", unit, err)
	}
	if called, err := os.ReadFile(calls); err != nil || !strings.Contains(string(called), "enable") {
		t.Errorf("systemctl was called with %q, %v", called, err)
	}
}

// Setup names another program that polls the bot, whether or not it is a ductor of this user, and writes nothing.
func TestASetupOfABotThatIsPolled(t *testing.T) {
	town, config := freshUser(t)
	args := []string{"setup", "--yes", "--api-base", town.srv.URL(), "--project", t.TempDir()}
	refused := func(want string) {
		t.Helper()
		code, stdout, stderr := runDuctor(t, args...)
		if _, err := os.Stat(config); code == 0 || !strings.Contains(stderr, want) || err == nil {
			t.Errorf("exit %d, %v: %s%s", code, err, stdout, stderr)
		}
	}
	t.Setenv("DUCTOR_TELEGRAM_TOKEN", town.srv.Token())
	stop := make(chan struct{})
	var polls sync.WaitGroup
	polls.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				if answer, err := http.Get(town.srv.URL() + "/bot" + town.srv.Token() +
					"/getUpdates?timeout=0"); err == nil {
					answer.Body.Close()
				}
			}
		}
	})
	refused("another program polls this bot")
	close(stop)
	polls.Wait()

	other := town.writeConfig()
	up := town.strikeAtStart()
	startDaemon(t, "run", "-c", other)
	<-up
	refused("serves this bot already")
}
