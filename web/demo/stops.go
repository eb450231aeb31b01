package demo

import (
	"context"
	"slices"
	"strings"
	"time"

	"ductor/internal/sim/telegram"
)

// stopTimeout is the maximum time that a step of the tour waits for ductor.
const stopTimeout = time.Minute

// stops returns the steps of the tour. It includes the step "change" only if undo is true.
func stops(undo bool) []stop {
	all := []stop{
		{
			name: "stream", title: "An answer grows while it is written", button: "Ask something",
			text: "Ask the agent, and watch one message grow by edits, with its formatting.",
			play: sendPrompt(streamPrompt), done: finished("That was live."),
		},
		{
			name: "tool", title: "See what the agent does", button: "Let it look around",
			text: "The agent runs a real command here. Its line names the command; Steps below the answer shows the output.",
			play: sendPrompt(toolPrompt), done: finished("a tea shop"),
		},
		{
			name: "approval", title: "Nothing runs unless you allow it", button: "Let it ask",
			text: "The agent wants to run a command that changes something, and waits for you.",
			todo: "Tap Allow once or Deny below the question.",
			play: sendPrompt(approvalPrompt), done: finished("asked first"),
		},
		{
			name: "change", title: "Every change can be undone", button: "Let it fix something",
			text: "The agent changes a file. Below its answer you see what changed, and take it back with one tap.",
			todo: "Allow the change, look at Diff below the answer, then tap Undo.",
			play: sendPrompt(changePrompt), done: containing("↩️ Undone."),
		},
		{
			name: "abort", title: "Stop it at any moment", button: "Start something long",
			text: "Stop ends the turn at once, with all processes that it started.",
			todo: "Tap Stop below the growing answer, or send /abort.",
			play: sendPrompt(abortPrompt), done: containing("⏹ Aborted.", "⏹ Stopped"),
		},
		{
			name: "model", title: "Choose the model", button: "Open the menu",
			text: "Every chat has its own agent, model and effort.",
			todo: "Tap an agent, a model, and how hard it should think.",
			play: sendPrompt("/model"), done: containing(chosenText),
		},
		{
			name: "handoff", title: "Another agent takes over", button: "Hand over",
			text: "The next agent gets everything said so far, so you need not explain it again.",
			play: handOver, done: finished("🤝 handed"),
		},
		{
			name: "file", title: "Files come back", button: "Ask for a report",
			text: "The agent writes a file in the project and sends it. You can send files, pictures and voice messages, too.",
			todo: "Allow the agent to write the file.",
			play: sendPrompt(filePrompt), done: hasFile,
		},
		{
			name: "restart", title: "A restart loses nothing", button: "Restart ductor now",
			text: "ductor stops and starts again while the agent works. The agent continues, and so does its message.",
			play: restartDuringTurn, done: finished("Nothing was lost."),
		},
	}
	return slices.DeleteFunc(all, func(s stop) bool { return s.name == "change" && !undo })
}

func sendPrompt(text string) func(context.Context, *Page) error {
	return func(_ context.Context, p *Page) error {
		p.you.Person().Send(p.you, text)
		return nil
	}
}

const (
	stopLabel  = "⏹ Stop"
	chosenText = "Your next message goes to "
)

// finished returns a function that checks whether the answer with the given words is complete. An incomplete answer has
// a stop button.
func finished(words string) func(telegram.View) bool {
	return func(v telegram.View) bool {
		return slices.ContainsFunc(v.FromBot(), func(m telegram.Message) bool {
			return strings.Contains(m.Text, words) && !m.HasButton(stopLabel)
		})
	}
}

// containing returns a function that checks whether the bot has sent a message that contains any of the given texts.
func containing(parts ...string) func(telegram.View) bool {
	return func(v telegram.View) bool {
		return slices.ContainsFunc(parts, func(part string) bool {
			_, found := v.Find(part)
			return found
		})
	}
}

func hasFile(v telegram.View) bool {
	return slices.ContainsFunc(v.FromBot(),
		func(m telegram.Message) bool { return m.Media != nil && m.Media.Name == "report.md" })
}

// handOver switches the chat to another agent and sends a prompt to it.
func handOver(ctx context.Context, p *Page) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	agent := "Gemini"
	if m, ok := p.you.View().Find(chosenText); ok && strings.Contains(m.Text, chosenText+agent) {
		agent = "Codex"
	}
	command := p.you.Person().Send(p.you, "/model "+strings.ToLower(agent))
	if _, err := p.you.AwaitMessage(ctx, func(m telegram.Message) bool {
		return m.ID > command.ID && strings.Contains(m.Text, chosenText+agent)
	}); err != nil {
		return err
	}
	p.you.Person().Send(p.you, handOverPrompt)
	return nil
}

// restartDuringTurn restarts ductor while an answer grows.
func restartDuringTurn(ctx context.Context, p *Page) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	prompt := p.you.Person().Send(p.you, restartPrompt)
	if _, err := p.you.AwaitMessage(ctx, func(m telegram.Message) bool {
		return m.ID > prompt.ID &&
			len(m.Text) > 120
	}); err != nil {
		return err
	}
	return p.opts.Bot.Restart(ctx)
}
