package approval

import (
	"fmt"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// ruleMax is how much of a rule a message shows, in UTF-16 units.
const ruleMax = 400

// draw is the message of an approval with a draft. user is the name of the user who decided, if the message should say it. The
// same arguments always give the same message.
func draw(a orchestrator.Approval, d draft, user string) (render.Text, tgapi.Keyboard) {
	switch {
	case a.Request == nil:
		return drawQuestion(a, d, user)
	case a.State != orchestrator.ApprovalOpen:
	case d.View == opShowSession, d.View == opShowPattern:
		return drawRule(a, d.View)
	case d.View == opReason:
		return drawReason(a, d)
	}
	return drawApproval(a, user)
}

// gate says whether a user can allow an approval.
type gate string

const (
	gateOpen   gate = "open"
	gateUnread gate = "unread" // only after opening the full text: the message does not show all of it
	gateShut   gate = "shut"   // not from the chat: it says nothing to decide on, or more than a chat can show
)

func gateOf(a orchestrator.Approval, s *subject) gate {
	switch {
	case whyShut(a) != "":
		return gateShut
	case s.cut:
		return gateUnread
	}
	return gateOpen
}

// drawApproval shows what an approval is about, and buttons while it is open.
func drawApproval(a orchestrator.Approval, user string) (render.Text, tgapi.Keyboard) {
	s := subjectOf(a)
	lines := s.lines
	if a.State != orchestrator.ApprovalOpen {
		return joinLines(append(lines, drawDecision(a, user))), nil
	}
	if n := a.Same(); n > 1 {
		lines = append(lines, render.Styled(render.Italic, fmt.Sprintf("Stands for %d identical requests.", n)))
	}
	if !a.Expires.IsZero() {
		lines = append(lines, render.Styled(render.Italic, "Denied at "+a.Expires.Local().Format("15:04")+" unless decided before."))
	}
	if gateOf(a, s) == gateUnread {
		lines = append(lines, render.Styled(render.Italic, "Not all of it is shown here: open 📄 Full text before you allow it."))
	}
	return joinLines(lines), approvalButtons(a, s)
}

// drawRule shows the exact rule that a choice would make. opBack leads back to drawApproval.
func drawRule(a orchestrator.Approval, op operation) (render.Text, tgapi.Keyboard) {
	rule, until, yes := a.SessionRule, "as long as this session is used", opSession
	if op == opShowPattern {
		rule, until, yes = a.Rule, "in this conversation, until it is revoked in /permissions", opPattern
	}
	if rule == "" || a.State != orchestrator.ApprovalOpen {
		return drawApproval(a, "")
	}
	shown, _ := shownRule(rule)
	lines := append(subjectOf(a).lines,
		render.Plain("Allowing it like this lets through without asking, "+until+":"),
		render.CodeBlock("", shown))
	return joinLines(lines), keyboard(a, []button{{"✅ Allow all of that", yes}}, []button{{"‹ Back", opBack}})
}

// shownRule is what a message shows of a rule, and whether that is less than all of it.
func shownRule(rule string) (string, bool) { return middle(render.Revealed(rule), ruleMax) }

// unreadFor says whether a choice needs the full text, because the message shows less than the choice allows.
func unreadFor(a orchestrator.Approval, choice orchestrator.Choice) bool {
	_, session := shownRule(a.SessionRule)
	_, pattern := shownRule(a.Rule)
	switch {
	case choice != orchestrator.AllowOnce && choice != orchestrator.AllowSession && choice != orchestrator.AllowPattern:
		return false
	case choice == orchestrator.AllowSession && session, choice == orchestrator.AllowPattern && pattern:
		return true
	}
	return a.Request != nil && subjectOf(a).cut
}

// drawReason asks the user for the reason of a denial.
func drawReason(a orchestrator.Approval, d draft) (render.Text, tgapi.Keyboard) {
	lines := subjectOf(a).lines
	then := "then it is denied, and the agent is told why."
	if a.Request.Deaf {
		then = "then it is denied. " + render.AgentName(lang.Printer{}, a.Agent) + " takes no reason with that, so it reads yours as your next message."
	}
	lines = append(lines, render.Styled(render.Bold, wordsWanted(a, d, "the reason")+": "+then))
	return joinLines(lines), keyboard(a, []button{{"⛔ Deny without a reason", opDeny}, {"‹ Back", opBack}})
}

// wordsWanted asks for words of the user. In a group they must reply, since not every message there is for the bot.
func wordsWanted(a orchestrator.Approval, d draft, what string) string {
	until := ", until " + d.Until.Local().Format("15:04")
	if outbox.ChatOf(a.Conversation.Chat).Group {
		return "Reply to this message with " + what + until
	}
	return "Your next message here is " + what + until
}

// drawDecision says how an approval ended, and which user decided.
func drawDecision(a orchestrator.Approval, user string) render.Text {
	by := ""
	if user = render.ShortenPlain(render.OneLine(render.Revealed(user)), render.NameLimit); user != "" {
		by = " by " + user
	}
	reason := render.ShortenPlain(render.OneLine(a.Reason), reasonMax)
	because := func(s string) string {
		if reason == "" {
			return s + "."
		}
		return s + ": " + reason
	}
	rule := render.Styled(render.Code, render.ShortenPlain(render.OneLine(render.Revealed(a.Ruled)), ruleMax))
	switch a.State {
	case orchestrator.ApprovalAllowed:
		switch {
		case a.Ruled == "":
			return render.Plain("✅ Allowed" + by + ".")
		case a.By == 0:
			return render.Concat(render.Plain("✅ Allowed by the rule "), rule)
		}
		return render.Concat(render.Plain("✅ Allowed"+by+", and with it "), rule)
	case orchestrator.ApprovalDenied:
		if a.Request == nil {
			return render.Plain(because("✖ Not answered" + by))
		}
		return render.Plain(because("⛔ Denied" + by))
	case orchestrator.ApprovalAnswered:
		return render.Plain("✅ Answered" + by + ".")
	case orchestrator.ApprovalExpired:
		if a.Request == nil {
			return render.Plain("⌛ Not answered in time.")
		}
		return render.Plain("⌛ Not decided in time, so it was denied.")
	}
	return render.Plain(because("↩ No longer waited for"))
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
