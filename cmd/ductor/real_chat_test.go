package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/modelapi"
	"ductor/internal/sim/telegram"
)

var (
	updateChat = flag.Bool("update-chat", false,
		"write the table of what the chat shows of each agent into docs/agents.md")
	someCells = flag.String("cells", "", "a regular expression: play only these cells, and leave the table")
)

// TestTheChatShowsWhatRealAgentsDo plays each situation with each real agent, and compares the chat with the agent's
// actions. The table is in docs/agents.md. A cell is a check mark, a dash if the agent lacks the feature, or a
// description of the difference.
func TestTheChatShowsWhatRealAgentsDo(t *testing.T) {
	realagent.LongOnly(t)
	agents := []string{"claude", "codex", "gemini", "copilot", "opencode", "qwen"}
	temporary := os.TempDir()
	only := regexp.MustCompile(*someCells)
	table := map[string]map[string]string{}
	for _, agent := range agents {
		table[agent] = map[string]string{}
		t.Run(agent, func(t *testing.T) {
			var s *scene
			for _, cell := range situations() {
				if !only.MatchString(cell.name) {
					continue
				}
				if s == nil {
					s = newScene(t, agent, temporary)
				}
				table[agent][cell.name] = s.play(cell)
				t.Logf("%s: %s", cell.name, table[agent][cell.name])
				if s.reason != "" { // the next situation should start from a clean state
					s.stop()
					s = nil
				}
			}
		})
	}
	chatTable().check(t, agents, table)
}

// situation is one row of the table. reason describes a difference, or is empty.
type situation struct {
	name string
	show func(*scene)
}

func situations() []situation {
	return append([]situation{
		{"answer", (*scene).answers},
		{"card allowed", (*scene).allows},
		{"card denied", (*scene).denies},
		{"pattern", (*scene).allowsAPattern},
		{"accept edits", (*scene).acceptsEdits},
		{"edit", (*scene).edits},
		{"new file", (*scene).makesAFile},
		{"failing command", (*scene).failsACommand},
		{"denied command", (*scene).deniesACommand},
		{"abort in text", (*scene).abortsText},
		{"abort in tool", (*scene).abortsATool},
		{"abort in card", (*scene).abortsACard},
		{"background", (*scene).runsInTheBackground},
		{"question in words", (*scene).asksInWords},
		{"plan", (*scene).plans},
		{"picture", (*scene).seesAPicture},
	}, troubles()...)
}

// scene is a town in which one real agent plays the situations.
type scene struct {
	*town
	api    *modelapi.Server
	agent  string
	mark   telegram.MessageID // the user's newest message
	reason string
	lacks  bool // the agent lacks the feature
}

func newScene(t *testing.T, agent, temporary string) *scene {
	t.Helper()
	t.Setenv("TMPDIR", temporary) // outside of the previous scene's directory
	town, api := realTown(t, agent, func(c *config.Config) { c.Permissions.Mode = "ask" })
	town.agent = agent
	return &scene{town: town, api: api, agent: agent}
}

// play starts a new session, plays a situation and returns its cell.
func (s *scene) play(c situation) string {
	s.t.Helper()
	s.reason, s.lacks = "", false
	s.prompt("/new")
	s.prompt("/permissions ask")
	before := s.mark
	c.show(s)
	s.checkNoProtocolTerms(before)
	if s.lacks {
		return "–"
	}
	if s.reason != "" {
		s.t.Logf("%s: %s\n%s", c.name, s.reason, s.screen(before))
		return s.reason
	}
	return "✓"
}

// recordDifference records a difference. Only the first one is kept.
func (s *scene) recordDifference(format string, args ...any) {
	if s.reason == "" {
		s.reason = fmt.Sprintf(format, args...)
	}
}

// screen returns the bot's messages below a message.
func (s *scene) screen(after telegram.MessageID) string {
	var b strings.Builder
	for _, m := range s.chat.View().FromBot() {
		if m.ID > after {
			fmt.Fprintf(&b, "--- %d %v\n%s\n", m.ID, m.Keyboard, m.Text)
		}
	}
	return b.String()
}

// neverShown are protocol terms and marks of unknown events, which users should never see.
var neverShown = []string{
	"threadId", "availableDecisions", "rawInput", "_meta", "toolCall.", "$runtime", "[MODE_UPDATE]",
	"ductor MCP Server", "mcp__ductor",
	"mcp_ductor", "planFilePath", "completed with no output", "+0 -0", "It says: run a command",
	"[current working directory", "doesn't want to", "Internal error", "auto ·",
}

// checkNoProtocolTerms searches the messages below one for terms that users do not understand.
func (s *scene) checkNoProtocolTerms(after telegram.MessageID) {
	for _, m := range s.chat.History() {
		for _, v := range m.Versions {
			for _, never := range neverShown {
				if m.From.Bot && m.ID > after && strings.Contains(v.Text, never) {
					s.recordDifference("the chat says “%s”", never)
				}
			}
		}
	}
}

// prompt sends a text. From then on, the scene only checks messages below it.
func (s *scene) prompt(format string, args ...any) {
	s.mark = s.say(format, args...).ID
}

// awaitShown waits for a message that is accepts, below the user's newest one. If none arrives, it records that.
func (s *scene) awaitShown(what string, is func(telegram.Message) bool) (telegram.Message, bool) {
	s.t.Helper()
	m, err := s.chat.AwaitMessage(s.soon(), func(m telegram.Message) bool {
		return m.From.Bot && m.ID > s.mark && is(m)
	})
	if err != nil {
		s.recordDifference("no %s", what)
	}
	return m, err == nil
}

// awaitText waits for a text of the bot.
func (s *scene) awaitText(part string) (telegram.Message, bool) {
	s.t.Helper()
	return s.awaitShown("“"+part+"”", func(m telegram.Message) bool { return strings.Contains(m.Text, part) })
}

// awaitDone waits for the end of the answer to the newest prompt, which must contain each part once.
func (s *scene) awaitDone(parts ...string) telegram.Message {
	s.t.Helper()
	m, ok := s.awaitShown("end of the answer", func(m telegram.Message) bool {
		return hasFooter(m) && !m.HasButton("⏹ Stop")
	})
	for _, part := range parts {
		if ok && strings.Count(m.Text, part) != 1 {
			s.recordDifference("%d times “%s” in the answer", strings.Count(m.Text, part), part)
		}
	}
	return m
}

func hasFooter(m telegram.Message) bool {
	return len(ended(telegram.View{Messages: []telegram.Message{m}})) > 0
}

// awaitCard waits for an approval that shows each part.
func (s *scene) awaitCard(parts ...string) (telegram.Message, bool) {
	s.t.Helper()
	m, ok := s.awaitShown("card", func(m telegram.Message) bool { return m.HasButton("⛔ Deny") })
	for _, part := range parts {
		if ok && !strings.Contains(m.Text, part) {
			s.recordDifference("the card lacks “%s”", part)
		}
	}
	return m, ok
}

// decide waits for an approval that shows each part, presses a button on it, and waits until its buttons are gone.
func (s *scene) decide(button string, parts ...string) bool {
	s.t.Helper()
	m, ok := s.awaitCard(parts...)
	if !ok {
		return false
	}
	if !m.HasButton(button) {
		s.recordDifference("the card has no %s", button)
		return false
	}
	if _, err := s.chat.Person().Press(s.soon(), m, button); err != nil {
		s.recordDifference("%s does nothing", button)
		return false
	}
	_, err := s.chat.Await(s.soon(), func(v telegram.View) bool {
		return !slices.ContainsFunc(v.FromBot(), func(now telegram.Message) bool {
			return now.ID == m.ID && now.HasButton(button)
		})
	})
	if err != nil {
		s.recordDifference("the card stays open")
	}
	return err == nil
}

func (s *scene) path(name string) string { return filepath.Join(s.cfg.Projects.DefaultDir, name) }

// checkFile checks whether a file is there.
func (s *scene) checkFile(name string, want bool) {
	_, err := os.Stat(s.path(name))
	switch {
	case want && err != nil:
		s.recordDifference("the agent did not make the file")
	case !want && err == nil:
		s.recordDifference("the agent made the file all the same")
	}
}

// checkToolLine checks that the answer contains the line of a tool.
func (s *scene) checkToolLine(m telegram.Message, mark string, parts ...string) {
	for line := range strings.Lines(m.Text) {
		if strings.Contains(line, mark) && !slices.ContainsFunc(parts, func(p string) bool {
			return !strings.Contains(line, p)
		}) {
			return
		}
	}
	s.recordDifference("no line “%s %s”", mark, strings.Join(parts, " … "))
}

// writes returns the directive with which the agent's model writes a file.
func (s *scene) writes(name, text string) string {
	return realagent.Writes(s.agent, s.cfg.Projects.DefaultDir, name, text)
}

func (s *scene) answers() {
	s.prompt(`[[start]] [[text "The whole answer."]]`)
	m := s.awaitDone("The whole answer.")
	if body, footer, _ := strings.Cut(m.Text, "\n\n"); body != "The whole answer." ||
		strings.ContainsAny(footer, "$|") {
		s.recordDifference("more than the answer: “%s”", strings.ReplaceAll(m.Text, "\n", " "))
	}
}

func (s *scene) allows() {
	s.prompt(`[[start]] [[tool cmd="touch allowed.txt"]] [[text "It is allowed."]]`)
	if s.decide("✅ Allow once", "touch allowed.txt") {
		s.checkToolLine(s.awaitDone("It is allowed."), "✓", "touch allowed.txt")
		s.checkFile("allowed.txt", true)
	}
}

func (s *scene) denies() {
	s.prompt(`[[start]] %s [[text "It is denied."]]`, s.writes("denied.txt", "a line"))
	if s.decide("⛔ Deny", "denied.txt", "a line") {
		s.checkToolLine(s.awaitDone(), "denied.txt", "denied")
		s.checkFile("denied.txt", false)
	}
}

func (s *scene) deniesACommand() {
	s.prompt(`[[start]] [[tool cmd="touch refused.txt"]] [[text "It is refused."]]`)
	if s.decide("⛔ Deny", "touch refused.txt") {
		s.checkToolLine(s.awaitDone(), "touch refused.txt", "denied")
		s.checkFile("refused.txt", false)
	}
}

func (s *scene) allowsAPattern() {
	s.prompt(`[[start]] [[tool cmd="mkdir one"]] [[text "The first."]]`)
	m, ok := s.awaitCard("mkdir one")
	if !ok {
		return
	}
	if !m.HasButton("Allow pattern…") {
		s.recordDifference("the card has no pattern")
		return
	}
	s.pressOn(m, "Allow pattern…")
	if m, ok = s.awaitText("mkdir *"); !ok {
		return
	}
	for _, row := range m.Keyboard {
		for _, button := range row {
			if strings.HasPrefix(button.Text, "✅ Allow") && !strings.Contains(button.Text, "once") {
				s.pressOn(m, button.Text)
				s.awaitDone("The first.")
				s.prompt(`[[start]] [[tool cmd="mkdir two"]] [[text "The second."]]`)
				s.checkToolLine(s.awaitDone("The second."), "✓", "mkdir two")
				s.checkFile("two", true)
				s.prompt("/permissions")
				return
			}
		}
	}
	s.recordDifference("the pattern has no Allow")
}

func (s *scene) acceptsEdits() {
	s.prompt("/permissions accept-edits")
	s.prompt(`[[start]] %s [[text "It is written."]]`, s.writes("accepted.txt", "a line"))
	s.awaitDone("It is written.")
	s.checkFile("accepted.txt", true)
}

func (s *scene) makesAFile() {
	s.prompt(`[[start]] %s [[text "It is made."]]`, s.writes("fresh.txt", "a line"))
	if s.decide("✅ Allow once", "fresh.txt", "a line", "➕") {
		s.checkToolLine(s.awaitDone("It is made."), "✓", "fresh.txt")
		s.checkFile("fresh.txt", true)
	}
}

func (s *scene) edits() {
	if err := os.WriteFile(s.path("old.txt"), []byte("first\nsecond\nthird\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.prompt(`[[start]] %s [[text "It is changed."]]`,
		realagent.Replaces(s.agent, s.cfg.Projects.DefaultDir, "old.txt", "second", "changed"))
	if s.decide("✅ Allow once", "old.txt", "second", "changed", "✎") {
		s.checkToolLine(s.awaitDone("It is changed."), "✓", "old.txt")
		if b, err := os.ReadFile(s.path("old.txt")); err != nil || string(b) != "first\nchanged\nthird\n" {
			s.recordDifference("the file is %q", b)
		}
	}
}

func (s *scene) failsACommand() {
	s.prompt(`[[start]] [[tool cmd="mkdir -p failed; exit 3"]] [[text "It has failed."]]`)
	if s.decide("✅ Allow once", "exit 3") {
		s.checkToolLine(s.awaitDone("It has failed."), "✗", "exit 3")
	}
}

// aborted presses a button that ends the turn. It checks that the turn ended, no process is left, and the agent still
// knows the conversation.
func (s *scene) aborted(prompt string) {
	running := s.mark
	s.prompt("/abort")
	if m, err := s.chat.AwaitMessage(s.soon(), func(m telegram.Message) bool {
		return m.From.Bot && m.ID > running && hasFooter(m) && !m.HasButton("⏹ Stop")
	}); err != nil {
		s.recordDifference("the answer does not end")
	} else if strings.Contains(m.Text, "denied") {
		s.recordDifference("the chat says that it was denied")
	}
	for began := time.Now(); len(s.livingOfTurns()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > patience {
			s.recordDifference("processes live on")
			return
		}
	}
	s.checkRemembers(prompt)
}

// checkRemembers checks that the model receives an earlier text, from the session itself or from ductor's handoff.
func (s *scene) checkRemembers(said string) {
	asked := len(s.api.Prompts())
	s.prompt(`what was said? [[start]] [[text "That was said."]]`)
	s.awaitDone("That was said.")
	if !slices.ContainsFunc(s.api.Prompts()[asked:], func(r modelapi.Request) bool {
		return strings.Contains(string(r.Body), said)
	}) {
		s.recordDifference("the agent does not know what was said")
	}
}

func (s *scene) abortsText() {
	s.prompt(`the prompt of text [[start]] [[text "On and on " ]] [[text n=2000 delay=20ms]]`)
	if _, ok := s.awaitText("On and on"); ok {
		s.aborted("the prompt of text")
	}
}

func (s *scene) abortsATool() {
	s.prompt(`the prompt of a tool [[start]] [[tool cmd="touch running; sleep 600"]]`)
	if s.decide("✅ Allow once", "sleep 600") {
		awaitFile(s.t, s.path("running"))
		s.aborted("the prompt of a tool")
	}
}

func (s *scene) abortsACard() {
	s.prompt(`the prompt of a card [[start]] [[tool cmd="touch waits.txt"]]`)
	if m, ok := s.awaitCard("touch waits.txt"); ok {
		s.aborted("the prompt of a card")
		s.checkFile("waits.txt", false)
		for _, now := range s.chat.View().FromBot() {
			if now.ID == m.ID && now.HasButton("⛔ Deny") {
				s.recordDifference("the card stays open")
			}
		}
	}
}

// runsInTheBackground makes the model start a background command.
func (s *scene) runsInTheBackground() {
	begins := realagent.Background(s.agent, "touch bg.txt; sleep 3")
	if begins == "" {
		s.lacks = true
		return
	}
	s.prompt(`[[start]] %s [[text "It runs beside."]]`, begins)
	if s.decide("✅ Allow once", "touch bg.txt") {
		s.awaitDone("It runs beside.")
		awaitFile(s.t, s.path("bg.txt"))
	}
}

// asksInWords makes the agent ask its own question, which the user answers with a text.
func (s *scene) asksInWords() {
	asks := realagent.Asks(s.agent)
	if asks == "" {
		s.lacks = true
		return
	}
	s.prompt(`[[start]] %s [[text "It was answered."]]`, asks)
	if m, ok := s.awaitShown("question", func(m telegram.Message) bool {
		return m.HasButton("Red") && strings.Contains(m.Text, "Which colour?")
	}); ok {
		if !m.HasButton("Blue") {
			s.recordDifference("the question lacks a choice")
		}
		s.chat.Person().Send(s.chat, "a shade of green", telegram.ReplyTo(m.ID))
		s.awaitDone("It was answered.")
		if !strings.Contains(s.api.Asked(), "a shade of green") {
			s.recordDifference("the answer does not reach the agent")
		}
	}
}

// plans makes the agent plan, and begin after the user's approval.
func (s *scene) plans() {
	s.prompt("/permissions plan")
	s.prompt(`[[start]] [[text "Before the plan."]]`)
	s.awaitDone("Before the plan.")
	begin := ""
	switch s.agent {
	case "claude":
		realagent.WritePlan(s.t, s.api, "the whole plan")
		begin = `[[call ExitPlanMode args="{}"]]`
	case "gemini":
		begin = geminiPlans
	default:
		if begin = realagent.Plans(s.agent); begin == "" {
			s.lacks = true
			return
		}
	}
	s.prompt(`[[start]] %s [[text "It begins."]]`, begin)
	m, ok := s.awaitShown("plan to begin", func(m telegram.Message) bool { return m.HasButton("▶️ Begin") })
	if !ok {
		return
	}
	if !strings.Contains(m.Text, "the whole plan") {
		s.recordDifference("the card lacks the plan")
	}
	s.pressOn(m, "▶️ Begin")
	s.awaitDone("It begins.")
	s.prompt("/permissions")
	s.awaitText("Now: ask")
	s.prompt(`[[start]] %s [[text "It is begun."]]`, s.writes("planned.txt", "a line"))
	if s.decide("✅ Allow once", "planned.txt") {
		s.awaitDone("It is begun.")
		s.checkFile("planned.txt", true)
	}
}

func (s *scene) seesAPicture() {
	s.mark = s.chat.Person().SendPhoto(s.chat, picture(s.t),
		telegram.WithCaption(`[[start]] [[text "It is seen."]]`)).ID
	m := s.awaitDone("It is seen.")
	for _, r := range slices.Backward(s.api.Prompts()) {
		if strings.Contains(r.Prompt, "It is seen.") {
			switch said := strings.Contains(m.Text, "gets only the path of the file"); {
			case len(r.Images) == 0 && !said:
				s.recordDifference("the picture does not reach the model")
			case said && !strings.Contains(r.Prompt, "[Attached file"):
				s.recordDifference("the path of the picture does not reach the model")
			}
			return
		}
	}
	s.recordDifference("the words do not reach the model")
}

// chatTable returns the table of what the chat shows of each agent.
func chatTable() agentTable {
	table := agentTable{
		begin:  "<!-- what the chat shows: written by cmd/ductor TestTheChatShowsWhatRealAgentsDo -update-chat -->\n",
		end:    "<!-- end of what the chat shows -->",
		corner: "the chat shows it",
		write:  *updateChat,
	}
	for _, c := range situations() {
		table.rows = append(table.rows, c.name)
	}
	return table
}
