package approval

import (
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// ruleMax is the maximum length of a rule in a message, in UTF-16 units.
const ruleMax = 400

// view renders an approval in the language of its chat.
type view struct {
	orchestrator.Approval
	lang lang.Printer
}

// draw returns the text and the buttons of an approval's message. user is the name of the user who decided, if known.
// draw depends on nothing but the view and its arguments.
func (a view) draw(d draft, user string) (render.Text, tgapi.Keyboard) {
	switch {
	case a.State != orchestrator.ApprovalOpen:
		return a.drawDecided(user), nil
	case a.Request == nil:
		return a.drawQuestion(d)
	case d.View == opShowSession, d.View == opShowPattern:
		return a.drawRule(d.View)
	case d.View == opReason:
		return a.drawReason(d)
	}
	return a.drawApproval()
}

// gate defines when users may allow a request in the chat.
type gate string

const (
	gateOpen   gate = "open"
	gateUnread gate = "unread" // the message omits a part, so users may allow only after they read the full text
	gateShut   gate = "shut"   // users cannot allow the request: it is incomplete, or too long for the chat
)

func (a view) gate(s *subject) gate {
	switch {
	case a.whyShut() != "":
		return gateShut
	case s.cut:
		return gateUnread
	}
	return gateOpen
}

func (a view) drawApproval() (render.Text, tgapi.Keyboard) {
	s := a.subject()
	lines := s.lines
	if n := a.Same(); n > 1 {
		lines = append(lines, render.Styled(render.Italic, a.lang.Text("approval.identical", n)))
	}
	if !a.Expires.IsZero() {
		lines = append(lines, render.Styled(render.Italic, a.drawExpiry()))
	}
	if a.gate(s) == gateUnread {
		lines = append(lines, render.Styled(render.Italic, a.lang.Text("approval.read-first")))
	}
	return joinLines(lines), a.approvalButtons(s)
}

func (a view) drawExpiry() string {
	if a.OfTerminal() {
		return a.lang.Text("approval.terminal-at", clock(a.Expires))
	}
	return a.lang.Text("approval.denied-at", clock(a.Expires))
}

// drawRule shows the rule that a button would create, with a button to confirm it.
func (a view) drawRule(op operation) (render.Text, tgapi.Keyboard) {
	rule, head, yes := a.SessionRule, lang.Key("approval.rule-of-session"), opSession
	if op == opShowPattern {
		rule, head, yes = a.Rule, "approval.rule-of-conversation", opPattern
	}
	if rule == "" {
		return a.drawApproval()
	}
	shown, _ := a.shownRule(rule)
	lines := append(a.subject().lines, render.Plain(a.lang.Text(head)), render.CodeBlock("", shown))
	return joinLines(lines), a.keyboard([]button{a.button("approval.allow-rule", yes)},
		[]button{a.button("common.back", opBack)})
}

// shownRule returns the text of a rule in a message. It reports whether the text omits a part of the rule.
func (a view) shownRule(rule string) (string, bool) {
	return middle(a.lang, render.Revealed(render.Rule(a.lang, rule)), ruleMax)
}

// unreadFor reports whether the message omits a part of the request or rule, so that users must read the full text
// before they make the choice.
func (a view) unreadFor(choice orchestrator.Choice) bool {
	_, session := a.shownRule(a.SessionRule)
	_, pattern := a.shownRule(a.Rule)
	switch {
	case choice == orchestrator.Deny, choice == orchestrator.Answer:
		return false
	case choice == orchestrator.AllowSession && session, choice == orchestrator.AllowPattern && pattern:
		return true
	}
	return a.Request != nil && a.subject().cut
}

// drawReason asks the user to type the reason of a denial.
func (a view) drawReason(d draft) (render.Text, tgapi.Keyboard) {
	p, until := a.lang, clock(d.Until)
	use := p.Text("approval.reason-with-denial")
	if a.Request.Deaf {
		use = p.Text("approval.reason-after-denial", render.AgentName(p, a.Agent))
	}
	wanted := a.textWanted(p.Text("approval.reply-with-reason", until), p.Text("approval.send-reason", until), use)
	lines := append(a.subject().lines, render.Styled(render.Bold, wanted))
	return joinLines(lines), a.keyboard([]button{
		a.button("approval.deny-without-reason", opDeny), a.button("common.back", opBack),
	})
}

// textWanted joins the sentences that ask for a text after the user pressed a button. They begin with inGroup or
// inPrivate: in a group, the user must send the text as a reply. In a private chat, the user's next message also counts
// as the text, until the user sends /new.
func (a view) textWanted(inGroup, inPrivate string, more ...string) string {
	if a.Conversation.Group() {
		return strings.Join(append([]string{inGroup}, more...), " ")
	}
	more = append(more, a.lang.Text("approval.reply-after-new"))
	return strings.Join(append([]string{inPrivate}, more...), " ")
}

func clock(t time.Time) string { return t.Local().Format("15:04") }

// drawDecision describes how the approval was decided, and in groups by whom.
func (a view) drawDecision(user string) render.Text {
	user = short(user, render.NameLimit)
	by := func(without, with string) string {
		if user == "" {
			return without
		}
		return with
	}
	rule := render.Styled(render.Code, short(render.Rule(a.lang, a.Ruled), ruleMax))
	p := a.lang
	switch a.State {
	case orchestrator.ApprovalAllowed:
		switch {
		case a.Ruled == "":
			return render.Plain(by(p.Text("approval.allowed"), p.Text("approval.allowed-by", user)))
		case a.By != 0 && a.Ruled == orchestrator.RuledByMode:
			return render.Plain(by(p.Text("approval.allowed-edits"), p.Text("approval.allowed-edits-by", user)))
		case a.By == 0:
			return render.Filled(p.Text("approval.allowed-by-rule", render.Slot), rule)
		}
		return render.Filled(by(p.Text("approval.allowed-with-rule", render.Slot),
			p.Text("approval.allowed-by-with-rule", user, render.Slot)), rule)
	case orchestrator.ApprovalDenied:
		if a.Request == nil {
			return a.withReason(by(p.Text("approval.not-answered"), p.Text("approval.not-answered-by", user)))
		}
		return a.withReason(by(p.Text("approval.denied"), p.Text("approval.denied-by", user)))
	case orchestrator.ApprovalAnswered:
		return render.Plain(by(p.Text("approval.answered"), p.Text("approval.answered-by", user)))
	case orchestrator.ApprovalExpired:
		if a.Request == nil {
			return render.Plain(p.Text("approval.question-expired", clock(a.Expires)))
		}
		return render.Plain(p.Text("approval.expired", clock(a.Expires)))
	}
	return a.withReason(p.Text("approval.withdrawn"))
}

// withReason adds the reason of a decision to the text about the decision.
func (a view) withReason(what string) render.Text {
	if reason := render.ShortLine(a.Reason, reasonMax); reason != "" {
		return render.Plain(a.lang.Text("common.because", what, reason))
	}
	return render.Plain(a.lang.Text("approval.without-reason", what))
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
