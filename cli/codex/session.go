package codex

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ductor/cli"
	"ductor/cli/turn"
)

// once describes to package turn how to run a turn with `codex exec`.
func (p *Provider) once() *turn.OneShot {
	return &turn.OneShot{Agent: Agent, Options: p.opts.ProviderOptions, Input: execInput, Start: p.start, Read: p.read}
}

// execInput returns the input of `codex exec`. It includes the system prompts, because there is no flag for them.
func execInput(req cli.Request, _ *cli.LeftRun) ([]byte, error) {
	if req.Task == cli.TaskCompact {
		return nil, cli.CannotCompact(Agent)
	}
	return []byte(req.Instructions() + req.Prompt), nil
}

// read returns the functions with which package turn reads the output of a turn.
func (p *Provider) read(t turn.Once) turn.Reading {
	parser := p.parser(t.Out, t.Req)
	parser.garbage = t.Stream.Garbage
	before := p.before(t.Req, t.Left)
	return turn.Reading{Handle: parser.line, Mark: before.mark(t.Req.Turn, t.Left), Result: func(end turn.End) cli.Result {
		r := parser.result(end, streamExit{t.Stream, t.Left != nil})
		if parser.done && !r.Detached {
			r.Consumed.Usage = p.used(parser.thread, before, parser.usage)
		}
		return r
	}}
}

func (p *Provider) start(ctx context.Context, req cli.Request) (cli.Process, string, error) {
	process, err := p.opts.StartOnce(ctx, Agent, req, cli.Command{Args: argv(req, p.opts.Sandbox), Env: p.env(req)})
	return process, "", err
}

// exit describes how a process ended.
type exit interface {
	Stderr() string
	Outcome(end turn.End) cli.Result
	// IsAdopted reports whether the turn was resumed after a restart of ductor. The beginning of its output may then be
	// missing.
	IsAdopted() bool
}

type streamExit struct {
	*turn.Stream
	adopted bool
}

func (s streamExit) IsAdopted() bool { return s.adopted }

func (s streamExit) Stderr() string { return s.Process().StderrTail() }

// result returns the result of the turn. If Codex completed the turn, the turn has succeeded, even if its process was
// stopped afterwards.
func (p *parser) result(end turn.End, exit exit) cli.Result {
	p.release(answers)
	stderr := exit.Stderr()
	r := cli.Result{}
	switch {
	case p.done && p.thread == "" && !exit.IsAdopted():
		r.Err = turn.Unnamed(Agent)
	case p.done:
	case p.failure != nil:
		r.Err = p.failure
	case end == turn.EndExit && p.thread == "" && kindOf(stderr) == cli.ResumeFailed:
		r.Err = &cli.Failure{Kind: cli.ResumeFailed, Agent: Agent, Detail: stderr}
	case end == turn.EndExit && kindOf(stderr) == cli.NotLoggedIn:
		r.Err = &cli.Failure{Kind: cli.NotLoggedIn, Agent: Agent, Detail: stderr}
	default:
		r = exit.Outcome(end)
	}
	r.Denials = append(p.denials, deniedPatches(stderr)...)
	return r
}

// deniedPatches returns the patches that the sandbox rejected. Codex reports them only on standard error.
func deniedPatches(stderr string) []cli.Denial {
	var denials []cli.Denial
	for line := range strings.Lines(stderr) {
		if strings.Contains(line, "patch rejected") {
			denials = append(denials, cli.Denial{Tool: "patch", Reason: denialReason})
		}
	}
	return denials
}

// argv returns the command line of one turn. It contains no prompt, because the prompt is on standard input. Codex
// accepts -s, -C and --add-dir only before the word "resume". Its flag -i takes all words up to "--".
func argv(req cli.Request, sandbox string) []string {
	args := []string{"exec", "--json", "--skip-git-repo-check", "-c", "analytics.enabled=false"}
	if req.Permission == cli.Bypass {
		args = append(args, "--dangerously-bypass-approvals-and-sandbox")
	} else {
		args = append(args, "-s", permissionsFor(req, false, sandbox).sandbox)
	}
	if req.Dir != "" {
		args = append(args, "-C", req.Dir)
	}
	for _, dir := range req.AddDirs {
		args = append(args, "--add-dir", dir)
	}
	args = append(args, trustFlag(req)...)
	args = append(args, serverArgs(req)...)
	args = append(args, toolFlags(req)...)
	args = append(args, req.ExtraArgs...)
	if req.Resume != "" {
		args = append(args, "resume")
	}
	if req.Model != "" {
		args = append(args, "-m", string(req.Model))
	}
	if req.Effort != "" {
		args = append(args, "-c", "model_reasoning_effort="+strconv.Quote(string(req.Effort)))
	}
	for _, image := range req.Images {
		args = append(args, "-i", image.Path)
	}
	args = append(args, "--")
	if req.Resume != "" {
		args = append(args, string(req.Resume))
	}
	return append(args, "-")
}

// total is the token usage of a thread before a turn. ductor subtracts it from the usage that `codex exec` reports,
// because Codex reports the usage of the whole thread.
type total struct {
	Usage cli.Usage
	Known bool
}

// before returns the thread's token usage before the turn. For a turn that ductor resumes after a restart, the usage is
// in the stored start of the turn.
func (p *Provider) before(req cli.Request, left *cli.LeftRun) total {
	if req.Resume == "" {
		return total{Known: true}
	}
	if left != nil {
		m, begun := left.Mark(req.Turn)
		var t total
		t.Known = begun && json.Unmarshal([]byte(m.Note), &t.Usage) == nil
		return t
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	u, known := p.totals[req.Resume]
	return total{u, known}
}

// mark returns a mark whose note contains t. After a restart, Provider.before reads t from this note. mark returns an
// empty mark, which is not stored, if t is zero or unknown, or if the turn is resumed.
func (t total) mark(turn cli.TurnID, left *cli.LeftRun) cli.Mark {
	if left != nil || !t.Known || t.Usage == (cli.Usage{}) {
		return cli.Mark{}
	}
	note, err := json.Marshal(t.Usage)
	if err != nil { // cannot happen: numbers can always be encoded
		return cli.Mark{}
	}
	return cli.Mark{Turn: turn, Note: string(note)}
}

// used returns the token usage of one turn. totalBefore and totalAfter are the thread's totals before and after the
// turn.
func (p *Provider) used(thread cli.AgentSessionID, totalBefore total, totalAfter cli.Usage) cli.Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.totals[thread] = totalAfter
	if !totalBefore.Known {
		// The total includes earlier turns, so the usage of this turn alone is unknown.
		return cli.Usage{}
	}
	return totalAfter.Sub(totalBefore.Usage)
}

// serverArgs returns the command-line arguments that configure tool servers. They contain only the names of environment
// variables; Codex reads the values from its own environment.
func serverArgs(req cli.Request) []string {
	var args []string
	for _, s := range req.Servers {
		table := serverTable(s, req.Permission)
		if s.URL != "" {
			delete(table, "http_headers")
			for header, variable := range s.Headers {
				table["env_http_headers."+header] = variable
			}
		} else {
			delete(table, "env")
			table["env_vars"] = s.VarNames()
		}
		for _, key := range slices.Sorted(maps.Keys(table)) {
			args = append(args, "-c", "mcp_servers."+s.Name+"."+key+"="+string(jsonOf(table[key])))
		}
	}
	return args
}
