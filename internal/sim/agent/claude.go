package agent

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// claudeVersion is the version of Claude Code whose protocol was recorded.
const claudeVersion = "2.1.197"

// claudeModel is the default model.
const claudeModel = "claude-opus-4-8[1m]"

// claude is a process of Claude Code. It has one session, and one or many turns.
type claude struct {
	*process
	args     claudeArgs
	started  time.Time
	id       string // ID of the session
	folder   string // directory for the sessions of the working directory
	model    string
	past     []entry
	total    modelTotals
	held     []byte     // newest event, if the output format is text; flush prints the text of this event at the end
	settings sync.Mutex // guards model and args.mode, which a control request may change during a turn
	answers  *answers
	queue    *queue
	tasks    chan *task // receives a background task when its command has ended
	working  int        // number of running background tasks; during a turn, only its goroutine may use this field
}

func (p *process) claude(args []string) int {
	a, err := parseClaude(args)
	if err != nil {
		return p.fail(1, err.Error())
	}
	if a.version {
		fmt.Fprintln(p.stdout, claudeVersion+" (Claude Code)")
		return 0
	}
	if len(a.command) > 0 {
		return p.claudeCommand(a.command)
	}
	if msg := a.wrong(p.env); msg != "" {
		return p.fail(1, msg)
	}
	c := &claude{process: p, args: a, started: time.Now(), answers: newAnswers(), queue: newQueue(),
		tasks: make(chan *task, 16)}
	if code, ok := c.openSession(); !ok {
		return code
	}
	if a.input == "stream-json" {
		return c.live()
	}
	return c.oneShot()
}

func (p *process) claudeCommand(words []string) int {
	if len(words) == 2 && words[0] == "auth" && words[1] == "status" {
		fmt.Fprint(p.stdout, "{\n  \"loggedIn\": true,\n  \"authMethod\": \"scripted\",\n  \"apiProvider\": \"firstParty\"\n}\n")
		return 0
	}
	return p.fail(1, "error: unknown command '"+strings.Join(words, " ")+"'")
}

// wrong returns the error message of Claude Code for an invalid command line, or "".
func (a claudeArgs) wrong(env map[string]string) string {
	switch {
	case !a.print:
		return "Error: the scripted agent has no interactive mode, use -p"
	case a.output == "stream-json" && !a.verbose:
		return "Error: When using --print, --output-format=stream-json requires --verbose"
	case a.input == "stream-json" && a.output != "stream-json":
		return "Error: --input-format=stream-json requires output-format=stream-json."
	case a.mode == "bypassPermissions" && os.Geteuid() == 0 && env["IS_SANDBOX"] != "1":
		return "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons"
	case a.sessionID != "" && uuid.Validate(a.sessionID) != nil:
		return "Error: Invalid session ID. Must be a valid UUID."
	}
	return a.wrongPrompts()
}

// openSession finds the session to continue, or creates one. If it returns false, the process must exit with code.
func (c *claude) openSession() (code int, ok bool) {
	c.folder = "claude/" + slug(c.dir)
	c.model = resolveModel(c.args.model)
	switch {
	case c.args.resume != "":
		return c.resumeSession(c.args.resume)
	case c.args.sessionID != "":
		c.id = c.args.sessionID
		if c.store.has(c.folder, c.id) {
			return c.fail(1, "Error: Session ID "+c.id+" is already in use."), false
		}
	default:
		c.id = uuid.NewString()
	}
	return 0, true
}

func (c *claude) resumeSession(id string) (code int, ok bool) {
	if uuid.Validate(id) != nil {
		c.id = uuid.NewString()
		return c.noSession(`Error: --resume requires a valid session ID or session title when used with --print. ` +
			`Usage: claude -p --resume <session-id|title>. Provided value "` + id +
			`" is not a UUID and does not match any session title.`), false
	}
	c.id = id
	if !c.store.has(c.folder, id) {
		return c.noSession("No conversation found with session ID: " + id), false
	}
	c.past = c.store.read(c.folder, id)
	if !c.args.fork {
		return 0, true
	}
	c.id = uuid.NewString()
	for _, e := range c.past {
		if err := c.store.add(c.folder, c.id, e); err != nil {
			return c.fail(1, "Error: "+err.Error()), false
		}
	}
	return 0, true
}

// noSession prints Claude's error for a session that does not exist, and returns the exit code.
func (c *claude) noSession(message string) int {
	if c.args.output != "text" {
		c.emit(obj("type", "result", "subtype", "error_during_execution", "duration_ms", 0, "duration_api_ms", 0,
			"is_error", true, "num_turns", 0, "stop_reason", nil, "session_id", c.id, "total_cost_usd", 0,
			"usage", usageJSON(tokens{}), "modelUsage", obj(), "permission_denials", []string{},
			"uuid", newUUID(), "errors", []string{message}))
		c.flush()
	}
	return c.fail(1, message)
}

func resolveModel(name string) string {
	switch name {
	case "", "default", "opus", "opus[1m]":
		return claudeModel
	case "sonnet":
		return "claude-sonnet-5"
	case "sonnet[1m]":
		return "claude-sonnet-5[1m]"
	case "haiku":
		return "claude-haiku-4-5-20251001"
	}
	return name
}

// stdinPatience limits how long a run with a prompt argument waits for more text on standard input.
const stdinPatience = 3 * time.Second

// oneShot runs one prompt from the arguments and standard input.
func (c *claude) oneShot() int {
	piped := make(chan string, 1)
	go func() {
		b, err := io.ReadAll(c.stdin)
		if err != nil {
			b = nil
		}
		piped <- string(b)
	}()
	var patience <-chan time.Time
	if c.args.hasPrompt {
		patience = time.After(stdinPatience)
	}
	prompt := c.args.prompt
	select {
	case more := <-piped:
		prompt = strings.TrimSpace(strings.Join([]string{prompt, more}, "\n"))
	case <-patience:
		fmt.Fprintln(c.stderr, "Warning: no stdin data received in 3s, proceeding without it. If piping from a slow command, "+
			"redirect stdin explicitly: < /dev/null to skip, or wait longer.")
	case s := <-c.signals:
		return signalCode(s)
	}
	if prompt == "" {
		return c.fail(1,
			"Error: Input must be provided either through stdin or as a prompt argument when using --print")
	}
	turn := c.startTurn([]userMessage{{prompt: prompt}})
	for {
		select {
		case end := <-turn.done:
			c.flush()
			return end.code
		case s := <-c.signals:
			if s != os.Interrupt {
				return signalCode(s)
			}
			turn.cancel(errInterrupted)
		}
	}
}

// signalCode returns the exit code of a Node.js program that a signal has ended.
func signalCode(s os.Signal) int {
	if s == os.Interrupt {
		return 130
	}
	return 143
}

// emit prints an event. If the output format is text, emit only stores the event, and flush prints its text at the end.
func (c *claude) emit(event []byte) {
	if c.args.output == "stream-json" {
		c.out.line(event)
		return
	}
	c.held = event
}

// flush prints the text of the event that emit has stored.
func (c *claude) flush() {
	if c.held != nil {
		c.out.line([]byte(resultText(c.held)))
	}
	c.held = nil
}

func (c *claude) currentModel() string {
	c.settings.Lock()
	defer c.settings.Unlock()
	return c.model
}

func (c *claude) currentMode() string {
	c.settings.Lock()
	defer c.settings.Unlock()
	return c.args.mode
}

// apiModel returns the name of the model in the API, without the suffix that selects a long context in Claude Code.
func (c *claude) apiModel() string { return strings.TrimSuffix(c.currentModel(), "[1m]") }
