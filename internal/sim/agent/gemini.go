package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// geminiVersion is the version of Gemini whose protocol was recorded.
const geminiVersion = "0.61.0"

// Exit codes of Gemini.
const (
	geminiNoAuth    = 41
	geminiBadInput  = 42
	geminiUntrusted = 55
)

// geminiArgs contains the options of Gemini that ductor uses.
type geminiArgs struct {
	acp, version        bool
	output, model, mode string
	resume, session     string
	prompt              *string
	dirs                []string
}

func geminiModes() []string { return []string{"default", "auto_edit", "yolo", "plan"} }

// parseGemini parses a command line. The value of an option follows after "=" or as the next word.
func parseGemini(args []string) (geminiArgs, error) {
	a := geminiArgs{mode: "default", model: geminiModelNames()[0]}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		switch name {
		case "--acp", "--experimental-acp":
			a.acp = true
			continue
		case "--version", "-v":
			a.version = true
			continue
		case "--skip-trust":
			continue
		}
		if !strings.HasPrefix(name, "-") {
			return a, errors.New("the scripted agent takes no words: " + args[i])
		}
		if !joined {
			if i++; i == len(args) {
				return a, errors.New("Not enough arguments following: " + name)
			}
			value = args[i]
		}
		if err := a.set(name, value); err != nil {
			return a, err
		}
	}
	return a, nil
}

func (a *geminiArgs) set(name, value string) error {
	switch name {
	case "-o", "--output-format":
		a.output = value
	case "-m", "--model":
		a.model = value
	case "-p", "--prompt":
		a.prompt = &value
	case "-r", "--resume":
		a.resume = value
	case "--session-id":
		a.session = value
	case "--include-directories":
		a.dirs = strings.Split(value, ",")
	case "--approval-mode":
		if !slices.Contains(geminiModes(), value) {
			return fmt.Errorf("Invalid values:\n  Argument: approval-mode, Given: %q", value)
		}
		a.mode = value
	case "--allowed-tools", "--policy":
	default:
		return errors.New("Unknown argument: " + strings.TrimLeft(name, "-"))
	}
	return nil
}

func (p *process) gemini(args []string) int {
	a, err := parseGemini(args)
	switch {
	case err != nil:
		return p.fail(1, err.Error())
	case a.version:
		fmt.Fprintln(p.stdout, geminiVersion)
		return 0
	case p.env["GEMINI_API_KEY"] == "" && !p.hasGeminiLogin():
		if !a.acp {
			return p.fail(geminiNoAuth, "Please set an Auth method in your settings.json or specify one of the following environment variables before running: GEMINI_API_KEY, GOOGLE_GENAI_USE_VERTEXAI, GOOGLE_GENAI_USE_GCA")
		}
	case p.env["GEMINI_CLI_TRUST_WORKSPACE"] != "true" && !a.acp:
		return p.fail(geminiUntrusted, "Gemini CLI is not running in a trusted directory.")
	}
	if a.acp {
		return p.geminiACP(a)
	}
	return p.geminiPrint(a)
}

func (p *process) hasGeminiLogin() bool {
	_, err := os.Stat(filepath.Join(p.env["HOME"], ".gemini", "oauth_creds.json"))
	return err == nil
}

func geminiFolder(dir string) string { return filepath.Join("gemini", slug(dir)) }

// geminiPrint runs one prompt from standard input.
func (p *process) geminiPrint(a geminiArgs) int {
	session, code, ok := p.geminiSession(a)
	if !ok {
		return code
	}
	piped, err := io.ReadAll(p.stdin)
	if err != nil {
		return p.fail(1, err.Error())
	}
	prompt := string(piped)
	if a.prompt != nil && *a.prompt != "" {
		prompt = strings.TrimSpace(prompt + "\n\n" + *a.prompt)
	}
	if strings.TrimSpace(prompt) == "" {
		return p.fail(geminiBadInput, "No input provided via stdin. Input can be provided by piping data into gemini or using the --prompt option.")
	}
	ctx, cancel := context.WithCancelCause(p.life)
	defer cancel(nil)
	sink := &geminiPrinter{process: p, json: a.output == "stream-json", model: a.model}
	t := &geminiTurn{process: p, ctx: ctx, sink: sink, session: session, dir: p.dir, mode: a.mode}
	sink.begin(session, prompt)
	done := make(chan error, 1)
	go func() { done <- t.run(prompt) }()
	select {
	case err := <-done:
		return sink.end(t, err)
	case s := <-p.signals: // like Gemini, exit without a result, and do not stop running commands
		t.spareTools = true
		cancel(signalError{s})
		<-done
		return 0
	}
}

// geminiSession finds the session to continue, or creates one. If it returns false, the process must exit with code.
func (p *process) geminiSession(a geminiArgs) (id string, code int, ok bool) {
	folder := geminiFolder(p.dir)
	switch {
	case a.resume != "":
		if !p.store.has(folder, a.resume) {
			return "", p.fail(geminiBadInput, geminiNoSession(a.resume)), false
		}
		return a.resume, 0, true
	case a.session != "":
		if p.store.has(folder, a.session) {
			return "", p.fail(geminiBadInput, "Error starting session: Session ID "+a.session+" already exists."), false
		}
		return a.session, 0, true
	}
	return newUUID(), 0, true
}

func geminiNoSession(id string) string {
	return fmt.Sprintf("Error resuming session: Invalid session identifier %q.\n  Use --list-sessions to see available sessions, "+
		"then use --resume {number}, --resume {uuid}, or --resume latest.", id)
}

func geminiModelNames() []string {
	return []string{"gemini-3.1-pro-preview", "gemini-3.8-flash", "gemini-2.5-pro"}
}
