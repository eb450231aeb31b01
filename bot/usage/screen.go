// Package usage implements the commands /usage and /audit. /usage shows the number, cost and duration of turns. /audit
// lists approvals and denials of users, and actions of agents that needed no approval.
package usage

import (
	"context"
	"strconv"
	"strings"
	"time"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Actions of this package's buttons: Action shows another page, and PlotAction sends a picture. The buttons' data
// describes the page or picture, so they also work after a restart.
const (
	Action     = "us"
	PlotAction = "up"
)

// Store reads the database. *store.DB implements it.
type Store interface {
	Usage(ctx context.Context, q orchestrator.UsageQuery) ([]orchestrator.UsageRow, error)
	PlanLimits(ctx context.Context) ([]cli.AccountLimits, error)
	AuditSince(ctx context.Context, since time.Time, limit int) ([]orchestrator.AuditEntry, error)
}

// Screen implements /usage and /audit. It is safe for concurrent use.
type Screen struct {
	Store Store
	Now   func() time.Time
	Spool *message.Spool   // stores pictures of plots; if nil, no pictures are sent
	Names *tgapi.ChatNames // names of chats and users; may be nil
	Lang  *lang.Choices
}

// period is the time span for which usage is shown. The data of buttons contains its values.
type period string

const (
	today period = "d"
	week  period = "w"
	month period = "m"
	year  period = "y"
)

func periods() []period { return []period{today, week, month, year} }

var (
	periodNames = map[period]lang.Key{
		today: "usage.today", week: "usage.week", month: "usage.month", year: "usage.year",
	}
	groupNames = map[orchestrator.UsageGroup]lang.Key{
		orchestrator.UsageByDay: "usage.by-day", orchestrator.UsageByAgent: "usage.by-agent",
		orchestrator.UsageByModel:        "usage.by-model",
		orchestrator.UsageByConversation: "usage.by-conversation", orchestrator.UsageByPerson: "usage.by-user",
	}
)

// Usage handles "/usage". args can name a period and a group, such as "month agent". By default, Usage shows the days
// of the last week.
func (s *Screen) Usage(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	p, group := week, orchestrator.UsageByDay
	for _, word := range strings.Fields(args) {
		one, isPeriod := periodWords[strings.ToLower(word)]
		g, isGroup := groupWords[strings.ToLower(word)]
		switch {
		case isPeriod:
			p = one
		case isGroup:
			group = g
		default:
			return tgapi.Page{Text: unknownWord(s.Lang.Of(by.Conversation.Chat), word)}, nil
		}
	}
	return s.table(ctx, by, p, group)
}

var (
	periodWords = map[string]period{"today": today, "week": week, "month": month, "year": year}
	groupWords  = map[string]orchestrator.UsageGroup{
		"day": orchestrator.UsageByDay, "agent": orchestrator.UsageByAgent, "model": orchestrator.UsageByModel,
		"chat": orchestrator.UsageByConversation, "conversation": orchestrator.UsageByConversation,
		"user": orchestrator.UsageByPerson,
	}
)

func unknownWord(p lang.Printer, word string) string {
	return p.Text("usage.unknown", render.Cut(word, 100),
		p.List("today", "week", "month", "year"), p.List("day", "agent", "model", "chat", "user"))
}

// since returns the start of a period.
func (s *Screen) since(p period) time.Time {
	now := s.Now().Local()
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch p {
	case today:
		return day
	case month:
		return day.AddDate(0, 0, -29)
	case year:
		return day.AddDate(-1, 0, 1)
	}
	return day.AddDate(0, 0, -6)
}

// maxRows is the maximum number of rows in a table.
const maxRows = 30

// barWidth is the length of the longest bar in characters.
const barWidth = 10

func (s *Screen) table(ctx context.Context, by orchestrator.Press, p period,
	group orchestrator.UsageGroup) (tgapi.Page, error) {
	say := s.Lang.Of(by.Conversation.Chat)
	q, rows, err := s.rows(ctx, by, p, group)
	if err != nil {
		return tgapi.Page{}, err
	}
	limits, err := s.Store.PlanLimits(ctx)
	if err != nil {
		return tgapi.Page{}, err
	}
	head := cli.LimitLines(say, limits, s.Now())
	if head != "" {
		head += "\n"
	}
	head += say.Text("usage.title", say.Text(periodNames[p]), say.Text(groupNames[group]))
	if q.In != (orchestrator.ConversationID{}) {
		head += "\n" + say.Text("usage.here-only")
	}
	lines := []string{head, ""}
	if len(rows) == 0 {
		lines = append(lines, say.Text("usage.nothing"))
	}
	share := shareOf(rows)
	shown := rows
	if group == orchestrator.UsageByDay { // prefer the newest days
		shown = rows[max(len(rows)-maxRows, 0):]
	} else {
		shown = rows[:min(len(rows), maxRows)]
	}
	for _, r := range shown {
		bar := strings.Repeat("▇", max(int(share(r)*barWidth+0.5), 1))
		lines = append(lines, bar+" "+s.name(say, r.Name, group), "    "+s.counts(say, r))
	}
	if rest := len(rows) - len(shown); rest > 0 {
		lines = append(lines, say.Text("usage.more", rest))
	}
	if len(rows) > 1 {
		lines = append(lines, "", say.Text("usage.total", s.counts(say, sumOf(rows))))
	}
	keyboard := s.buttons(say, p, group)
	if len(rows) > 0 && s.Spool != nil {
		keyboard = append(keyboard, plotButtons(say, p, group))
	}
	return tgapi.Page{Text: strings.Join(lines, "\n"), Keyboard: keyboard}, nil
}

// rows returns the usage in a period, and the query that selects it. If the user may not see all usage, rows returns
// only the conversation's usage.
func (s *Screen) rows(ctx context.Context, by orchestrator.Press, p period,
	group orchestrator.UsageGroup) (orchestrator.UsageQuery, []orchestrator.UsageRow, error) {
	q := orchestrator.UsageQuery{Since: s.since(p), By: group}
	if !by.May(orchestrator.SeeAll) {
		q.In = by.Conversation
	}
	rows, err := s.Store.Usage(ctx, q)
	return q, rows, err
}

func sumOf(rows []orchestrator.UsageRow) (total orchestrator.UsageRow) {
	for _, r := range rows {
		total.Turns, total.Tokens, total.CostUSD, total.Took = total.Turns+r.Turns, total.Tokens+r.Tokens,
			total.CostUSD+r.CostUSD, total.Took+r.Took
	}
	return total
}

// shareOf returns a function for the rows of a table. The function divides the cost of a row by the highest cost of all
// rows. If no agent reports costs, it uses the numbers of tokens.
func shareOf(rows []orchestrator.UsageRow) func(orchestrator.UsageRow) float64 {
	var cost, tokens float64
	for _, r := range rows {
		cost, tokens = max(cost, r.CostUSD), max(tokens, float64(r.Tokens))
	}
	return func(r orchestrator.UsageRow) float64 {
		switch {
		case cost > 0:
			return r.CostUSD / cost
		case tokens > 0:
			return float64(r.Tokens) / tokens
		}
		return 0
	}
}

// counts returns a text such as "3 turns, $0.42, 12k tokens, 4 min".
func (s *Screen) counts(p lang.Printer, r orchestrator.UsageRow) string {
	parts := []string{p.Text("usage.turns", r.Turns)}
	if r.CostUSD > 0 {
		parts = append(parts, p.Cost(r.CostUSD))
	}
	if r.Tokens > 0 {
		parts = append(parts, p.Tokens(r.Tokens))
	}
	return p.List(append(parts, p.Rounded(r.Took))...)
}

// user returns the name of a user, or a text with the ID if the name is unknown.
func (s *Screen) user(p lang.Printer, id string) string {
	number, err := strconv.ParseInt(id, 10, 64)
	if name := s.Names.User(orchestrator.PersonID(number)); err == nil && name != "" {
		return name
	}
	return p.Text("usage.user", id)
}

func (s *Screen) name(p lang.Printer, name string, group orchestrator.UsageGroup) string {
	switch {
	case name == "", group == orchestrator.UsageByPerson && name == "0":
		return p.Text("usage.no-user")
	case group == orchestrator.UsageByDay:
		if day, err := time.ParseInLocation(time.DateOnly, name, time.Local); err == nil {
			return p.Date(day)
		}
	case group == orchestrator.UsageByAgent:
		return render.AgentName(p, name)
	case group == orchestrator.UsageByConversation:
		if in, err := orchestrator.ParseKey(cli.Conversation(name)); err == nil {
			name = s.Names.Chat(in)
		}
		return p.Text("usage.chat", name)
	case group == orchestrator.UsageByPerson:
		return s.user(p, name)
	}
	return render.ShortLine(name, 60)
}

// buttons returns the buttons that choose the period and the group.
func (s *Screen) buttons(say lang.Printer, p period, group orchestrator.UsageGroup) tgapi.Keyboard {
	var first []tgapi.Button
	for _, one := range periods() {
		first = append(first, button(render.Marked(say.Text(periodNames[one]), one == p),
			string(one)+":"+string(group)))
	}
	keyboard := tgapi.Keyboard{first, nil, nil}
	for i, g := range orchestrator.UsageGroups() {
		row := 1 + i/3
		keyboard[row] = append(keyboard[row], button(render.Marked(say.Text(groupNames[g]), g == group),
			string(p)+":"+string(g)))
	}
	return keyboard
}

func button(text, what string) tgapi.Button {
	return tgapi.NewButton(text, Action, what)
}

// auditPage is the prefix of the data of buttons that show another page of /audit. The number of the page follows.
const auditPage = "a"

// Press handles a button with the action Action. data is the button's data without the action.
func (s *Screen) Press(ctx context.Context, by orchestrator.Press, data string) (a tgapi.Answer, err error) {
	what, arg, _ := strings.Cut(data, ":")
	page, isPage := tgapi.ButtonNumber(arg)
	p, g, isTable := chosen(data)
	switch {
	case isPage && what == auditPage:
		a.Edit, err = s.audit(ctx, by, page)
	case isTable:
		a.Edit, err = s.table(ctx, by, p, g)
	default:
		a = tgapi.Stale(s.Lang.Of(by.Conversation.Chat))
	}
	return a, err
}

// chosen parses the period and the group in the data of a button.
func chosen(data string) (period, orchestrator.UsageGroup, bool) {
	for _, g := range orchestrator.UsageGroups() {
		for _, p := range periods() {
			if data == string(p)+":"+string(g) {
				return p, g, true
			}
		}
	}
	return "", "", false
}
