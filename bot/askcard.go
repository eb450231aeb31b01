package bot

import (
	"fmt"
	"slices"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// askRuleMax is how much of a rule a message shows, in UTF-16 units.
const askRuleMax = 400

// drawAsk is how an ask stands in the chat, with what people began to do about it. who names the person who
// decided it, where that is worth saying. Pure.
func drawAsk(a orchestrator.Ask, d askDraft, who string) (render.Text, tgapi.Keyboard) {
	switch {
	case a.Approval == nil:
		return questionView(a, d, who)
	case a.State != orchestrator.AskOpen:
	case d.View == askShowSession, d.View == askShowPattern:
		return askConfirm(a, d.View)
	case d.View == askReason:
		return askForReason(a, d)
	}
	return askView(a, who)
}

// askGate says whether an approval can be allowed.
type askGate string

const (
	gateOpen   askGate = "open"
	gateUnread askGate = "unread" // only after its full text was opened: the card does not show all of it
	gateShut   askGate = "shut"   // not from the chat: there is nothing to decide on, or more than a chat can show
)

// gateOf is the same for the same ask.
func gateOf(a orchestrator.Ask, s *subject) askGate {
	switch {
	case whyShut(a) != "":
		return gateShut
	case s.cut:
		return gateUnread
	}
	return gateOpen
}

// askView is how an approval stands in the chat: what it is about, and buttons as long as it is open. Pure;
// the same ask always gives the same message.
func askView(a orchestrator.Ask, who string) (render.Text, tgapi.Keyboard) {
	s := subjectOf(a)
	lines := s.lines
	if a.State != orchestrator.AskOpen {
		return joinLines(append(lines, askEnding(a, who))), nil
	}
	if n := a.Same(); n > 1 {
		lines = append(lines, render.Styled(render.Italic, fmt.Sprintf("Stands for %d identical requests.", n)))
	}
	if !a.Expires.IsZero() {
		lines = append(lines, render.Styled(render.Italic, "Denied by itself at "+a.Expires.Local().Format("15:04")+"."))
	}
	if gateOf(a, s) == gateUnread {
		lines = append(lines, render.Styled(render.Italic, "Not all of it is shown here: open 📄 Full text before you allow it."))
	}
	return joinLines(lines), askButtons(a, s)
}

// askConfirm shows the exact rule that a choice would make, before it is made. askBack leads back to askView.
func askConfirm(a orchestrator.Ask, op askOp) (render.Text, tgapi.Keyboard) {
	rule, until, yes := a.SessionRule, "as long as this session is used", askSession
	if op == askShowPattern {
		rule, until, yes = a.Rule, "in this conversation, until it is revoked in /permissions", askPattern
	}
	if rule == "" || a.State != orchestrator.AskOpen {
		return askView(a, "")
	}
	shown, _ := shownRule(rule)
	lines := append(subjectOf(a).lines,
		render.Plain("Allowing it like this lets through unasked, "+until+":"),
		render.CodeBlock("", shown))
	return joinLines(lines), askKeyboard(a, []askButton{{"✅ Allow all of that", yes}}, []askButton{{"‹ Back", askBack}})
}

// shownRule is a rule as a message shows it, and whether that is not all of it.
func shownRule(rule string) (string, bool) { return middle(render.Revealed(rule), askRuleMax) }

// unreadFor says whether a choice takes the full text to have been opened, because the chat shows less than it allows.
func unreadFor(a orchestrator.Ask, choice orchestrator.Choice) bool {
	_, session := shownRule(a.SessionRule)
	_, pattern := shownRule(a.Rule)
	switch {
	case choice != orchestrator.AllowOnce && choice != orchestrator.AllowSession && choice != orchestrator.AllowPattern:
		return false
	case choice == orchestrator.AllowSession && session, choice == orchestrator.AllowPattern && pattern:
		return true
	}
	return a.Approval != nil && subjectOf(a).cut
}

// askForReason asks for the reason of a denial.
func askForReason(a orchestrator.Ask, d askDraft) (render.Text, tgapi.Keyboard) {
	lines := subjectOf(a).lines
	told := "then it is denied, and the agent is told why."
	if a.Approval.Deaf {
		told = "then it is denied. " + render.AgentName(a.Agent) + " takes no reason with that, so it reads yours as your next message."
	}
	lines = append(lines, render.Styled(render.Bold, askedWords(a, d, "the reason")+": "+told))
	return joinLines(lines), askKeyboard(a, []askButton{{"⛔ Deny without a reason", askDeny}, {"‹ Back", askBack}})
}

// askedWords says how to say something of one's own. In a group not every message is for us, so it has to be a reply.
func askedWords(a orchestrator.Ask, d askDraft, what string) string {
	until := ", until " + d.Until.Local().Format("15:04")
	if outbox.ChatOf(a.Conversation.Chat).Group {
		return "Reply to this message with " + what + until
	}
	return "Your next message here is " + what + until
}

// askEnding says how it was decided, and by whom where who says so.
func askEnding(a orchestrator.Ask, who string) render.Text {
	if who = render.ShortenPlain(render.OneLine(render.Revealed(who)), render.NameLimit); who != "" {
		who = " by " + who
	}
	reason := render.ShortenPlain(render.OneLine(a.Reason), askReasonMax)
	because := func(s string) string {
		if reason == "" {
			return s + "."
		}
		return s + ": " + reason
	}
	ruled := render.Styled(render.Code, render.ShortenPlain(render.OneLine(render.Revealed(a.Ruled)), askRuleMax))
	switch a.State {
	case orchestrator.AskAllowed:
		switch {
		case a.Ruled == "":
			return render.Plain("✅ Allowed" + who + ".")
		case a.By == 0:
			return render.Concat(render.Plain("✅ Allowed by the rule "), ruled)
		}
		return render.Concat(render.Plain("✅ Allowed"+who+", and with it "), ruled)
	case orchestrator.AskDenied:
		if a.Approval == nil {
			return render.Plain(because("✖ Not answered" + who))
		}
		return render.Plain(because("⛔ Denied" + who))
	case orchestrator.AskAnswered:
		return render.Plain("✅ Answered" + who + ".")
	case orchestrator.AskExpired:
		if a.Approval == nil {
			return render.Plain("⌛ Nobody answered in time.")
		}
		return render.Plain("⌛ Nobody decided in time, so it was denied.")
	}
	return render.Plain(because("↩ No longer waited for"))
}

func askButtons(a orchestrator.Ask, s *subject) tgapi.Keyboard {
	if a.Approval.Tool == cli.ProjectTool {
		return projectButtons(a, s)
	}
	first, wider := []askButton{{"⛔ Deny", askDeny}}, []askButton{}
	if gateOf(a, s) != gateShut {
		first = append([]askButton{{"✅ Allow once", askOnce}}, first...)
		if a.SessionRule != "" {
			wider = append(wider, askButton{"Allow this session…", askShowSession})
		}
		if a.Rule != "" {
			wider = append(wider, askButton{"Allow pattern…", askShowPattern})
		}
	}
	last := []askButton{{"Deny with reason…", askReason}}
	label := func(f cli.Field) bool { return f.Weight == cli.LabelField }
	if s.cut || unreadFor(a, orchestrator.AllowSession) || unreadFor(a, orchestrator.AllowPattern) || slices.ContainsFunc(a.Approval.Fields, label) {
		last = append(last, askButton{"📄 Full text", askFull})
	}
	return askKeyboard(a, first, wider, last)
}

// projectButtons are those below the settings of a project. They are allowed until they change, or left out.
func projectButtons(a orchestrator.Ask, s *subject) tgapi.Keyboard {
	row := []askButton{{"Without them", askDeny}}
	if gateOf(a, s) != gateShut && a.Rule != "" {
		row = append([]askButton{{"✅ Use them", askPattern}}, row...)
	}
	return askKeyboard(a, row, []askButton{{"📄 Full text", askFull}})
}

type askButton struct {
	text string
	op   askOp
}

// askKeyboard makes buttons that name the ask and carry its nonce, so they work after a restart too.
func askKeyboard(a orchestrator.Ask, rows ...[]askButton) tgapi.Keyboard {
	var k tgapi.Keyboard
	for _, row := range rows {
		var buttons []tgapi.Button
		for _, b := range row {
			if data, ok := (askPress{id: a.ID, nonce: a.Nonce, op: b.op}).data(); ok {
				buttons = append(buttons, tgapi.Button{Text: b.text, Data: data})
			}
		}
		if len(buttons) > 0 {
			k = append(k, buttons)
		}
	}
	return k
}

func joinLines(lines []render.Text) render.Text { return render.AsMessage(separated(lines)) }

func separated(lines []render.Text) render.Text {
	var parts []render.Text
	for i, l := range lines {
		if i > 0 {
			parts = append(parts, render.Plain("\n"))
		}
		parts = append(parts, l)
	}
	return render.Concat(parts...)
}
