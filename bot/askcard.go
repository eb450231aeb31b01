package bot

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// Sizes of what an ask shows, in UTF-16 units. Together with what stands around them they fit a message.
const (
	askDetailMax = 1200
	askDiffMax   = 1200 // of all changes together
	askChanges   = 5
	askReasonMax = 300
	askRuleMax   = 400
)

// drawAsk is how an ask stands in the chat, with what people began to do about it. who names the person who
// decided it, where that is worth saying. Pure.
func drawAsk(a orchestrator.Ask, d askDraft, who string) (render.Text, Keyboard) {
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

// askView is how an approval stands in the chat: what it is about, and buttons as long as it is open. Pure;
// the same ask always gives the same message.
func askView(a orchestrator.Ask, who string) (render.Text, Keyboard) {
	lines, short := askSubject(a)
	if a.State != orchestrator.AskOpen {
		return joinLines(append(lines, askEnding(a, who))), nil
	}
	if n := a.Same(); n > 1 {
		lines = append(lines, render.Styled(render.Italic, fmt.Sprintf("Stands for %d identical requests.", n)))
	}
	if !a.Expires.IsZero() {
		lines = append(lines, render.Styled(render.Italic, "Denied by itself at "+a.Expires.Local().Format("15:04")+"."))
	}
	return joinLines(lines), askButtons(a, short)
}

// askConfirm shows the exact rule that a choice would make, before it is made. askBack leads back to askView.
func askConfirm(a orchestrator.Ask, op askOp) (render.Text, Keyboard) {
	rule, until, yes := a.SessionRule, "as long as this session is used", askSession
	if op == askShowPattern {
		rule, until, yes = a.Rule, "in this conversation, until it is revoked in /permissions", askPattern
	}
	if rule == "" || a.State != orchestrator.AskOpen {
		return askView(a, "")
	}
	lines, _ := askSubject(a)
	lines = append(lines,
		render.Plain("Allowing it like this lets through unasked, "+until+":"),
		render.CodeBlock("", shorten(revealed(rule), askRuleMax)))
	return joinLines(lines), askKeyboard(a, []askButton{{"✅ Allow all of that", yes}}, []askButton{{"‹ Back", askBack}})
}

// askForReason asks for the reason of a denial.
func askForReason(a orchestrator.Ask, d askDraft) (render.Text, Keyboard) {
	lines, _ := askSubject(a)
	told := "then it is denied, and the agent is told why."
	if a.Approval.Deaf {
		told = "then it is denied. " + agentName(a.Agent) + " takes no reason with that, so it reads yours as your next message."
	}
	lines = append(lines, render.Styled(render.Bold, askedWords(a, d, "the reason")+": "+told))
	return joinLines(lines), askKeyboard(a, []askButton{{"⛔ Deny without a reason", askDeny}, {"‹ Back", askBack}})
}

// askedWords says how to say something of one's own. In a group not every message is for us, so it has to be a reply.
func askedWords(a orchestrator.Ask, d askDraft, what string) string {
	until := ", until " + d.Until.Local().Format("15:04")
	if chatRef(a.Conversation.Chat).Group {
		return "Reply to this message with " + what + until
	}
	return "Your next message here is " + what + until
}

// askSubject is what is to be decided. short says that not all of it is there.
func askSubject(a orchestrator.Ask) (lines []render.Text, short bool) {
	ask := a.Approval
	head := render.Concat(render.Plain("🔐 May "+agentName(a.Agent)+" use "),
		render.Styled(render.Bold, shorten(oneLine(ask.Tool), nameMax)), render.Plain("?"))
	if ask.Tool == cli.PlanTool {
		head = render.Plain("🗺 May " + agentName(a.Agent) + " begin with this plan?")
	}
	detail, cutDetail := middle(revealed(strings.TrimSpace(cmp.Or(ask.Detail, ask.Title))), askDetailMax)
	lines = append(lines, head)
	switch {
	case detail == "":
	case ask.Tool == cli.PlanTool && !cutDetail:
		lines = append(lines, render.Markdown(detail))
	default:
		lines = append(lines, render.CodeBlock("", detail))
	}
	changes, cutChanges := askDiffs(ask.Changes)
	lines = append(lines, changes...)
	if reason := shorten(oneLine(ask.Reason), askReasonMax); reason != "" {
		lines = append(lines, render.Styled(render.Italic, "It says: "+reason))
	}
	return lines, cutDetail || cutChanges
}

// askDiffs shows what would be changed: the files, and the beginning and the end of each diff.
func askDiffs(changes []cli.FileChanged) (lines []render.Text, short bool) {
	room := askDiffMax / max(min(len(changes), askChanges), 1)
	for i, ch := range changes {
		if i == askChanges {
			return append(lines, render.Plain(fmt.Sprintf("… and %d more files", len(changes)-i))), true
		}
		icon := map[cli.ChangeKind]string{cli.FileAdded: "➕", cli.FileDeleted: "➖"}[ch.Kind]
		lines = append(lines, render.Concat(render.Plain(cmp.Or(icon, "✎")+" "),
			render.Styled(render.Code, shorten(oneLine(revealed(ch.Path)), titleMax)), render.Plain(diffCount(ch.Diff))))
		diff, cut := middle(revealed(strings.TrimRight(ch.Diff, "\n")), room)
		if diff != "" {
			lines = append(lines, render.CodeBlock("diff", diff))
		}
		short = short || cut
	}
	return lines, short
}

// revealed is s as the chat keeps it, with the characters written out that are not seen but change what is
// seen, such as those that turn the direction of writing: nobody must allow what he was not shown.
func revealed(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
			continue
		}
		b.WriteRune(r)
	}
	return render.Plain(b.String()).Text // measured as it will be shown
}

// middle takes the middle out of s when it is longer than limit. The end stays: what matters in a command may
// stand there.
func middle(s string, limit int) (string, bool) {
	if render.Len(s) <= limit {
		return s, false
	}
	runes := []rune(s)
	limit -= 50 // for the line about it
	head, tail := limit*2/3, limit/3
	// Characters beyond the basic plane count twice; then a little less is shown.
	if len(runes) < render.Len(s) {
		head, tail = head/2, tail/2
	}
	left := len(runes) - head - tail
	return fmt.Sprintf("%s\n… %d characters are not shown here …\n%s", string(runes[:head]), left, string(runes[len(runes)-tail:])), true
}

// askEnding says how it was decided, and by whom where who says so.
func askEnding(a orchestrator.Ask, who string) render.Text {
	if who = shorten(oneLine(revealed(who)), nameMax); who != "" {
		who = " by " + who
	}
	reason := shorten(oneLine(a.Reason), askReasonMax)
	because := func(s string) string {
		if reason == "" {
			return s + "."
		}
		return s + ": " + reason
	}
	ruled := render.Styled(render.Code, shorten(oneLine(revealed(a.Ruled)), askRuleMax))
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

func askButtons(a orchestrator.Ask, short bool) Keyboard {
	wider := []askButton{}
	if a.SessionRule != "" {
		wider = append(wider, askButton{"Allow this session…", askShowSession})
	}
	if a.Rule != "" {
		wider = append(wider, askButton{"Allow pattern…", askShowPattern})
	}
	last := []askButton{{"Deny with reason…", askReason}}
	if short {
		last = append(last, askButton{"📄 Full text", askFull})
	}
	return askKeyboard(a, []askButton{{"✅ Allow once", askOnce}, {"⛔ Deny", askDeny}}, wider, last)
}

type askButton struct {
	text string
	op   askOp
}

// askKeyboard makes buttons that name the ask and carry its nonce, so they work after a restart too.
func askKeyboard(a orchestrator.Ask, rows ...[]askButton) Keyboard {
	var k Keyboard
	for _, row := range rows {
		var buttons []Button
		for _, b := range row {
			if data, ok := (askPress{id: a.ID, nonce: a.Nonce, op: b.op}).data(); ok {
				buttons = append(buttons, Button{Text: b.text, Data: data})
			}
		}
		if len(buttons) > 0 {
			k = append(k, buttons)
		}
	}
	return k
}

// askWhole is all there is to decide on, in as many messages as it takes up to a bound.
func askWhole(a orchestrator.Ask) []render.Text {
	ask := a.Approval
	if ask == nil {
		return nil
	}
	lines := []render.Text{render.Styled(render.Bold, shorten(oneLine(ask.Tool), nameMax))}
	if detail := cmp.Or(ask.Detail, ask.Title); strings.TrimSpace(detail) != "" {
		lines = append(lines, render.CodeBlock("", revealed(detail)))
	}
	for _, ch := range ask.Changes {
		lines = append(lines, render.Styled(render.Code, oneLine(revealed(ch.Path))))
		if ch.Diff != "" {
			lines = append(lines, render.CodeBlock("diff", revealed(ch.Diff)))
		}
	}
	var out []render.Text
	for _, p := range render.Split(joinLines(lines), hardLimit) {
		if len(out) == askWholeMax {
			return append(out, render.Plain("… The rest is longer than a chat can show. If in doubt, deny."))
		}
		out = append(out, p.Text)
	}
	return out
}

// askWholeMax is how many messages a full text may take.
const askWholeMax = 8

func joinLines(lines []render.Text) render.Text { return asMessage(separated(lines)) }

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

// agentName is an agent as people know it.
func agentName(a cli.Agent) string {
	if a == "" {
		return "the agent"
	}
	return strings.ToUpper(string(a[:1])) + shorten(oneLine(string(a[1:])), nameMax)
}
