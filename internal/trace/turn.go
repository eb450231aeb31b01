package trace

import (
	"encoding/json"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

type turn struct {
	tracer *Tracer
	agent  cli.Agent
	req    cli.Request
	began  time.Time
	model  cli.ModelID
	open   map[cli.ToolID]cli.ToolStarted
	tools  []span
}

// Begin implements orchestrator.Tracer.
func (t *Tracer) Begin(agent cli.Agent, req cli.Request) orchestrator.TurnTrace {
	return &turn{tracer: t, agent: agent, req: req, began: t.opts.Now(), open: map[cli.ToolID]cli.ToolStarted{}}
}

const mostTools = 1000

// Observe implements orchestrator.TurnTrace.
func (r *turn) Observe(ev cli.Event) {
	switch ev := ev.(type) {
	case cli.SessionStarted:
		r.model = ev.Model
	case cli.ToolStarted:
		if ev.At.IsZero() {
			ev.At = r.tracer.opts.Now()
		}
		r.open[ev.ID] = ev
	case cli.ToolChanged:
		ev.At = r.open[ev.ID].At
		r.open[ev.ID] = ev.ToolStarted
	case cli.ToolEnded:
		if began, ok := r.open[ev.ID]; ok && len(r.tools) < mostTools {
			delete(r.open, ev.ID)
			r.tools = append(r.tools, r.tool(began, ev))
		}
	}
}

func (r *turn) trace() string { return idOf(16, "turn/"+string(r.req.Turn)) }
func (r *turn) spanID(of string) string {
	return idOf(8, "turn/"+string(r.req.Turn)+"/"+of)
}

func (r *turn) tool(began cli.ToolStarted, ended cli.ToolEnded) span {
	finish := began.At.Add(ended.Duration)
	if ended.Duration == 0 {
		finish = r.tracer.opts.Now()
	}
	s := span{
		Trace: r.trace(), ID: r.spanID(string(began.ID)), Parent: r.spanID(""), Name: "execute_tool " + began.Name,
		Kind:  kindInternal,
		Start: nanos(began.At), End: nanos(finish),
	}
	if began.Parent != "" {
		s.Parent = r.spanID(string(began.Parent))
	}
	a := &s.Attributes
	a.text("gen_ai.operation.name", "execute_tool")
	a.text("gen_ai.tool.name", began.Name)
	a.text("gen_ai.tool.call.id", string(began.ID))
	a.number("ductor.tool.input.size", int64(len(began.Input)))
	a.number("ductor.tool.result.size", int64(len(ended.Output)))
	if ended.Failed() {
		a.text("error.type", "tool_error")
		s.Status.Code = codeError
	}
	if r.tracer.opts.Content {
		a.text("gen_ai.tool.call.arguments", r.shown(string(began.Input)))
		a.text("gen_ai.tool.call.result", r.shown(ended.Output))
		s.Status.Message = r.shown(ended.Err)
	}
	return s
}

const mostContent = 16 << 10

func (r *turn) shown(text string) string {
	return cli.Shorten(r.tracer.opts.Hide(r.req.Dir, text), mostContent)
}

// End implements orchestrator.TurnTrace. If the turn continues while ductor restarts, End does nothing: the next
// process records the turn.
func (r *turn) End(result cli.Result) {
	if result.Detached {
		return
	}
	model := r.model
	if result.Model != "" {
		model = result.Model
	}
	ended := r.tracer.opts.Now()
	s := span{
		Trace: r.trace(), ID: r.spanID(""), Name: "invoke_agent " + string(r.agent), Kind: kindClient,
		Start: nanos(r.began), End: nanos(ended),
	}
	a := &s.Attributes
	*a = append(*a, r.common(model)...)
	a.text("gen_ai.agent.name", string(r.agent))
	a.text("gen_ai.conversation.id", r.req.Session)
	a.text("gen_ai.response.model", string(model))
	a.list("gen_ai.response.finish_reasons", finish(result))
	used := result.Consumed.Usage
	a.number("gen_ai.usage.input_tokens", used.Input+used.CacheRead+used.CacheWrite)
	a.number("gen_ai.usage.output_tokens", used.Output)
	a.number("gen_ai.usage.cache_read.input_tokens", used.CacheRead)
	a.number("gen_ai.usage.cache_creation.input_tokens", used.CacheWrite)
	a.amount("ductor.cost", result.Consumed.CostUSD)
	a.text("ductor.sandbox", r.req.Sandbox.Name())
	if result.Err != nil {
		a.text("error.type", string(result.Err.Kind))
		s.Status.Code = codeError
	}
	if r.tracer.opts.Content {
		a.text("gen_ai.input.messages", r.message("user", r.req.Prompt))
		a.text("gen_ai.output.messages", r.message("assistant", result.Text))
	}
	r.tracer.put(append(r.tools, s))
	r.tracer.measure(r.common(model), string(r.agent), result, ended.Sub(r.began))
}

func (r *turn) common(model cli.ModelID) (a attributes) {
	a.text("gen_ai.operation.name", "invoke_agent")
	a.text("gen_ai.provider.name", provider(r.agent))
	wanted := r.req.Model
	if wanted == "" {
		wanted = model
	}
	a.text("gen_ai.request.model", string(wanted))
	return a
}

// provider returns the vendor of an agent's models, in the spelling of OpenTelemetry's conventions.
func provider(agent cli.Agent) string {
	switch agent {
	case "claude":
		return "anthropic"
	case "codex":
		return "openai"
	case "gemini":
		return "gcp.gemini"
	}
	return string(agent)
}

func finish(r cli.Result) string {
	switch {
	case r.Aborted:
		return "aborted"
	case r.Err != nil:
		return "error"
	}
	return "stop"
}

// message encodes a text as a list of messages, in the format of OpenTelemetry's conventions.
func (r *turn) message(role, text string) string {
	type part struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	raw, _ := json.Marshal([]struct { // strings can always be encoded
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}{{role, []part{{"text", r.shown(text)}}}})
	return string(raw)
}
