package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/modelapi"
	"ductor/internal/sim/telegram"
)

// Real agents in situations that once broke the chat: their model broke off, refused, or had a tool denied.
func TestRealAgentsInTrouble(t *testing.T) {
	realagent.LongOnly(t)
	for agent, play := range map[string]func(*failingTown){"claude": claudeInTrouble, "codex": codexInTrouble,
		"gemini": geminiInTrouble, "copilot": copilotInTrouble} {
		t.Run(agent, func(t *testing.T) {
			town, api := realTown(t, agent, func(c *config.Config) { c.Permissions.Mode = "ask" })
			in := &failingTown{town: town, api: api}
			play(in)
			for _, m := range town.chat.History() {
				for _, v := range m.Versions {
					for _, never := range []string{
						"doesn't want to", "the turn ended before", "Run --model", "exceeded retry limit",
						"did not allow this", "[1m]", "request id", "said no", "auto ·", "not allow tool",
						"[Operation Cancelled",
					} {
						if m.From.Bot && strings.Contains(v.Text, never) {
							t.Errorf("the chat showed %q: %q", never, v.Text)
						}
					}
					if advice := adviceIn(v.Text); m.From.Bot &&
						(len(advice) > 1 || len(advice) > 0 && m.HasButton("🔁 Run again") && advice[0] == "send") {
						t.Errorf("the chat gave the advice %q: %q", advice, v.Text)
					}
				}
			}
		})
	}
}

// adviceIn returns the advice that a text contains after a failure.
func adviceIn(text string) (found []string) {
	for _, advice := range []string{"send", "/model", "--model", "log in", "ductor doctor", "try again", "Try again",
		"/new"} {
		if _, failure, failed := strings.Cut(text, "⚠️"); failed && strings.Contains(failure, advice) {
			found = append(found, advice)
		}
	}
	return found
}

// doctor's checks of the real agents contain no meaningless line.
func TestTheDoctorOfRealAgents(t *testing.T) {
	realagent.LongOnly(t)
	town, _ := realSurroundings(t, "gemini", func(c *config.Config) {
		for at, real := range map[*config.Agent]realagent.CLI{
			&c.Agents.Claude: realagent.Claude(t, "http://127.0.0.1:9"), &c.Agents.Codex.Agent: realagent.Codex(t, "http://127.0.0.1:9"), &c.Agents.Copilot: realagent.Copilot(t, "http://127.0.0.1:9"),
		} {
			at.Enabled, at.Path = true, real.Path
		}
	})
	_, stdout, _ := runDuctor(t, "doctor", "-c", town.writeConfig())
	for _, agent := range []string{"claude", "codex", "gemini", "copilot"} {
		if !strings.Contains(stdout, "agent "+agent+": ") {
			t.Errorf("it says nothing of %s: %q", agent, stdout)
		}
	}
	for line := range strings.Lines(stdout) {
		if said := strings.TrimSpace(line); said == "" || strings.HasSuffix(said, ":") {
			t.Errorf("a line says nothing: %q in %q", line, stdout)
		}
	}
}

// failingTown is a town whose agent fails.
type failingTown struct {
	*town
	api   *modelapi.Server
	turns int
}

// checkAnswer sends a prompt and checks the answer: it contains each part once.
func (in *failingTown) checkAnswer(prompt string, parts ...string) telegram.Message {
	in.t.Helper()
	in.say("%s", "[[start]]"+prompt)
	return in.next(parts...)
}

func (in *failingTown) next(parts ...string) telegram.Message {
	in.t.Helper()
	in.turns++
	m := in.awaitDone(in.turns)
	for _, part := range parts {
		if n := strings.Count(m.Text, part); n != 1 {
			in.t.Errorf("%q is %d times in %q", part, n, m.Text)
		}
	}
	return m
}

const half = `[[text "This is the first half of an answer. " chunk=6 delay=10ms]]`

// breakStream interrupts the model's stream. The text so far stays and is not repeated.
func (in *failingTown) breakStream(times int) {
	in.t.Helper()
	m := in.checkAnswer(fmt.Sprintf(`%s[[drop times=%d]][[text "This is the rest."]]`, half, times),
		"This is the first half of an answer. This is the rest.")
	shown := 0
	for _, v := range m.Versions {
		if have := strings.Count(v.Text, "half"); have < shown {
			in.t.Errorf("it flickers: %q", v.Text)
		} else {
			shown = have
		}
	}
}

// denyTool denies a tool, which the card reports, and then aborts while another tool waits for permission.
func (in *failingTown) denyTool(shown string) {
	in.t.Helper()
	in.say(`[[start]][[text "It is about to."]][[tool cmd="touch a.txt"]][[text "after the denial"]]`)
	in.press("⛔ Deny")
	if m := in.next("It is about to.", shown, "after the denial"); strings.Contains(m.Text, "to.after") {
		in.t.Errorf("paragraphs stick together: %q", m.Text)
	}
	in.awaitNoButton("⛔ Deny")
	in.say(`[[start]][[tool cmd="touch b.txt"]]`)
	in.awaitButton("⛔ Deny")
	in.say("/abort")
	if m := in.next("Aborted"); strings.Contains(m.Text, "denied") {
		in.t.Errorf("nobody denied it: %q", m.Text)
	}
}

// failTool makes a tool fail, which the card marks.
func (in *failingTown) failTool(command, shown string) {
	in.t.Helper()
	in.say(`[[start]][[tool cmd=%q]][[text "after the failure"]]`, command)
	in.press("✅ Allow once")
	if m := in.next(shown, "after the failure"); strings.Contains(m.Text, "✓") {
		in.t.Errorf("a tool that failed is shown as done: %q", m.Text)
	}
}

// interruptWaiting interrupts a turn that waits for permission and has received another message. That message is answered after
// the interrupting one.
func (in *failingTown) interruptWaiting() {
	in.t.Helper()
	in.say(`[[start]][[tool cmd="touch c.txt"]]`)
	in.awaitButton("⛔ Deny")
	in.say(`[[start]][[text "the answer to what was handed over"]]`)
	in.press(steerButton)
	in.await("Handed to the agent")
	in.say(`[[start]][[text "the answer to what interrupts"]]`)
	in.press("⚡ Interrupt")
	in.await("the answer to what interrupts")
	in.turns += 2
	in.next("the answer to what was handed over")
}

func claudeInTrouble(in *failingTown) {
	in.interruptWaiting()
	in.breakStream(1) // after the second break, Claude requests the answer without streaming
	in.denyTool("touch a.txt · denied")
	in.checkAnswer(`[[error 404]]`, "does not know this model", "It may not exist")
	in.checkAnswer(`[[text "An answer that is refused."]][[end refusal]]`, "An answer that is refused.", "The model refused: ")
}

func codexInTrouble(in *failingTown) {
	in.interruptWaiting()
	in.breakStream(2)
	in.denyTool("touch a.txt · denied")
	in.checkAnswer(`[[error 429]]`, "429 Too Many Requests")
	in.checkAnswer(`[[text "An answer that is cut."]][[end max-tokens]]`, "An answer that is cut.",
		"The answer was cut at the model's limit.")
	in.checkAnswer(`[[text "An answer that is refused."]][[end refusal]]`, "An answer that is refused.",
		"The model refused: a content filter stopped the answer")
	in.say(`[[start]][[text "It begins."]][[hang]]`)
	in.await("It begins.")
	in.killAgents()
	in.next("signal 9)")
}

func copilotInTrouble(in *failingTown) {
	in.breakStream(2)
	in.breakAllStreams()
	in.denyTool("touch a.txt · denied")
	// Copilot asks the model to continue a truncated answer, and gives up after some attempts.
	if m := in.checkAnswer(`[[text "An answer that is cut."]][[end max-tokens]]`,
		"The answer was cut at the model's limit."); !strings.Contains(m.Text, "An answer that is cut.") {
		in.t.Errorf("the answer is %q", m.Text)
	}
	in.checkAnswer(`[[text "An answer that is refused."]][[end refusal]]`, "An answer that is refused.", "The model refused.")
}

// breakAllStreams breaks every stream of the model. The text so far stays, and so does the line about the agent's retries.
func (in *failingTown) breakAllStreams() {
	in.t.Helper()
	m := in.checkAnswer(half+`[[drop]]`, "This is the first half of an answer.", "can't reach its model over the network")
	began := false
	for i, v := range m.Versions {
		retries := strings.Contains(v.Text, "asking the model's API again")
		if began && !retries && i < len(m.Versions)-1 {
			in.t.Errorf("the card flickers: %q", v.Text)
		}
		began = began || retries
	}
	if !began {
		in.t.Error("the card does not say that the model is asked again")
	}
}

func geminiInTrouble(in *failingTown) {
	in.say("/model gemini high") // Gemini has no efforts; the model is chosen anyway
	in.await("Gemini · its default model")
	in.checkAnswer(half+`[[error 503 times=1]][[text "This is the rest."]]`,
		"This is the first half of an answer. This is the rest.", "\ngemini-")
	in.checkAnswer(half+`[[end unsaid times=1]]`, "This is the first half of an answer.")
	in.checkAnswer(`[[end refusal]]`, "its model gave no answer")
	in.checkAnswer(half+`[[end unsaid]]`, "This is the first half of an answer.", "the answer broke off")
	const line = "- this is one of five equal lines\\n"
	if m := in.checkAnswer(fmt.Sprintf(`[[text "%s" chunk=%d]]`, strings.Repeat(line, 5), len(line)-1)); strings.Count(m.Text,
		"five equal lines") != 5 {
		in.t.Errorf("it shows %q", m.Text)
	}
	in.abortAnswering()
	in.failTool(`exit 3`, "✗ Run exit 3 · exit 3")
	in.failTool(`echo $(id)`, "✗ Run echo $(id)") // Gemini rejects this command
	// Gemini forgets a waiting tool when its process ends, and its model then rejects the session.
	in.denyTool("touch a.txt · denied")
	in.checkAnswer(`[[text "The session goes on."]]`, "The session goes on.")
}

// abortAnswering aborts Gemini during an answer, and then during a tool. Gemini forgets the first turn, so ductor hands it
// over.
func (in *failingTown) abortAnswering() {
	in.t.Helper()
	for _, c := range []struct {
		word, script string
		forgets      bool
	}{{"zebra", `[[text "half a zebra"]][[hang]]`, true}, {"lion", `[[tool cmd="touch running; sleep 60"]]`, false}} {
		in.say(`[[start]]remember the %s %s`, c.word, c.script)
		if c.forgets {
			in.await("half a zebra")
		} else {
			in.press("✅ Allow once")
			awaitFile(in.t, filepath.Join(in.cfg.Projects.DefaultDir, "running"))
		}
		in.say("/abort")
		in.next("Aborted")
		if m := in.checkAnswer(`[[text "It goes on."]]`, "It goes on."); strings.Contains(m.Text,
			"handed 1 turn") != c.forgets {
			in.t.Errorf("after %s it shows %q", c.script, m.Text)
		}
		prompts := in.api.Prompts()
		if n := strings.Count(string(prompts[len(prompts)-1].Body), "remember the "+c.word); n != 1 {
			in.t.Errorf("after %s Gemini reads the prompt %d times", c.script, n)
		}
	}
}

// If a turn of a real agent runs much too long, ductor ends it, the chat says so, and the session continues.
func TestARealAgentThatRunsForFarTooLong(t *testing.T) {
	realagent.LongOnly(t)
	for _, agent := range []string{"claude", "codex", "gemini", "copilot"} {
		t.Run(agent, func(t *testing.T) {
			town, _ := realTown(t, agent, func(c *config.Config) { c.Agents.StaleAfter = 12 * time.Second })
			in := &failingTown{town: town}
			in.checkAnswer(`[[text "It begins."]][[hang]]`, "It begins.",
				"took too long and was stopped: it had been running for ")
			in.checkAnswer(`[[text "It goes on."]]`, "It goes on.")
		})
	}
}

// A restart of ductor repeats no edit, neither while a real agent works nor after its answer.
func TestARestartEditsNothingInVain(t *testing.T) {
	realagent.LongOnly(t)
	town, _ := realTown(t, "claude", nil)
	gate := filepath.Join(town.cfg.Projects.DefaultDir, "gate")
	town.say(`[[text "An answer."]]`)
	town.awaitDone(1)
	town.say(`[[start]][[text "It begins."]][[tool cmd="until test -e %s; do sleep 0.1; done"]][[text "It ends."]]`,
		gate)
	town.await("It begins.")
	for range 3 {
		town.leave()
		town.start()
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	town.await("It ends.")
	town.awaitDone(2)
	town.leave()
	town.start()
	town.say(`[[start]][[text "One more."]]`)
	town.awaitDone(3)
	for _, c := range town.srv.Calls(telegram.InChat(town.chat.ID())) {
		if strings.Contains(c.Description, "not modified") {
			t.Errorf("%s of message %d changes nothing: %v", c.Method, c.Message, c.Params)
		}
	}
}

// An agent that is missing in a sandbox's image is reported as missing there, even if this machine has it.
func TestAnAgentThatTheImageLacks(t *testing.T) {
	host := engineHost(t)
	real := realagent.Gemini(t, "http://127.0.0.1:9")
	town := newTown(t, func(c *config.Config) {
		boxes(t, host, c)
		real.Setenv(t)
		c.Agents.Claude.Enabled, c.Agents.Codex.Enabled, c.Agents.Copilot.Enabled = false, false, false
		c.Agents.Default, c.Agents.Gemini.Path = "gemini", "/opt/agents/bin/gemini"
	})
	for _, say := range []string{`[[text "An answer."]]`, "/model gemini"} {
		asked := town.say("%s", say)
		m := town.awaitMessage(func(m telegram.Message) bool {
			return m.ID > asked.ID && strings.Contains(m.Text, "Gemini")
		})
		if !strings.Contains(m.Text, "missing from the image of the sandbox default. Add its CLI to the image") ||
			strings.Contains(m.Text, "nstall") {
			t.Errorf("after %s it says %q", say, m.Text)
		}
	}
}
