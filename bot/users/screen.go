package users

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/internal/paircode"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/users"
)

// Action is the first part of the data of all buttons of this package. The data also contains an operation and a role
// or user, so the buttons also work after a restart.
const Action = "ur"

// Directory manages the users. *users.Directory implements it.
type Directory interface {
	List(ctx context.Context) ([]users.Known, error)
	Invite(ctx context.Context, by orchestrator.Press, role orchestrator.UserRole) (code string, err error)
	SetRole(ctx context.Context, by orchestrator.Press, id orchestrator.PersonID, role orchestrator.UserRole) error
	Remove(ctx context.Context, by orchestrator.Press, id orchestrator.PersonID) error
	Greet(ctx context.Context, id orchestrator.PersonID) (orchestrator.JoinedUser, bool, error)
	Greeted(ctx context.Context, id orchestrator.PersonID) error
}

// LearnNames adds the names of the users who accepted an invitation to names. d may be nil.
func LearnNames(ctx context.Context, d Directory, names *tgapi.ChatNames) error {
	if d == nil {
		return nil
	}
	all, err := d.List(ctx)
	for _, u := range all {
		if u.Name != "" {
			names.LearnUser(u.ID, u.Name)
		}
	}
	return err
}

// Screen implements /pair and /users. If Directory is nil, only the users in the configuration file exist, and buttons
// of the Screen do nothing. It is safe for concurrent use.
type Screen struct {
	Directory Directory
	Bot       string // username of the bot, for the links
	Lang      *lang.Choices
}

// Operations of the buttons. Their arguments follow in the data.
const (
	opInvite = "i"
	opList   = "l"
	opOpen   = "o"
	opRole   = "r" // followed by the role, "/" and the user's ID
	opRemove = "x"
)

func button(text, op, what string) tgapi.Button {
	return tgapi.NewButton(text, Action, op+what)
}

// Pair handles "/pair". It lets an owner choose the role of the new user. Only private chats show the link, because
// everybody who sees the link can use it.
func (s *Screen) Pair(_ context.Context, by orchestrator.Press, _ string) (tgapi.Page, error) {
	p := s.Lang.Of(by.Conversation.Chat)
	if by.Conversation.Group() {
		return tgapi.Page{Text: p.Text("users.in-private")}, nil
	}
	return tgapi.Page{
		Text: p.Text("users.which-role"), Keyboard: tgapi.Keyboard{s.roles(p, opInvite, "", orchestrator.RoleNone)},
	}, nil
}

// roles returns one button per role. It marks the current role.
func (s *Screen) roles(p lang.Printer, op, user string, now orchestrator.UserRole) (row []tgapi.Button) {
	for _, r := range orchestrator.UserRoles() {
		row = append(row, button(render.Marked(roleName(p, r), r == now), op, string(r)+user))
	}
	return row
}

func roleName(p lang.Printer, r orchestrator.UserRole) string {
	switch r {
	case orchestrator.RoleOwner:
		return p.Text("users.owner")
	case orchestrator.RoleViewer:
		return p.Text("users.viewer")
	}
	return p.Text("users.user")
}

// Users handles "/users". It lists all users.
func (s *Screen) Users(ctx context.Context, by orchestrator.Press, _ string) (tgapi.Page, error) {
	p := s.Lang.Of(by.Conversation.Chat)
	all, err := s.Directory.List(ctx)
	if err != nil {
		return tgapi.Page{}, err
	}
	page := tgapi.Page{Text: p.Text("users.all")}
	for _, u := range all {
		page.Text += "\n" + line(p, u)
		if !u.Configured {
			page.Keyboard = append(page.Keyboard, []tgapi.Button{
				button(render.Cut(named(u), 40), opOpen, idText(u.ID)),
			})
		}
	}
	page.Text += "\n\n" + p.Text("users.how")
	return page, nil
}

func idText(id orchestrator.PersonID) string { return strconv.FormatInt(int64(id), 10) }

func named(u users.Known) string {
	return strings.TrimSpace(render.OneLine(u.Name) + " " + idText(u.ID))
}

func line(p lang.Printer, u users.Known) string {
	if u.Configured {
		return p.Text("users.configured", named(u), roleName(p, u.Role))
	}
	return p.Text("users.joined-on", render.Cut(named(u), 100), roleName(p, u.Role), p.Moment(u.Joined.Local()))
}

// Press handles a button of this package. data is the button's data without the action.
func (s *Screen) Press(ctx context.Context, by orchestrator.Press, data string) (a tgapi.Answer, err error) {
	p := s.Lang.Of(by.Conversation.Chat)
	if data == "" || s.Directory == nil {
		return tgapi.Stale(p), nil
	}
	switch op, what := data[:1], data[1:]; op {
	case opInvite:
		a.Edit, err = s.invite(ctx, by, what)
	case opList:
		a.Edit, err = s.Users(ctx, by, "")
	case opOpen:
		a.Edit, err = s.open(ctx, by, parseID(what))
	case opRemove:
		if err = s.Directory.Remove(ctx, by, parseID(what)); err == nil {
			a.Text = p.Text("users.removed", parseID(what))
			a.Edit, err = s.Users(ctx, by, "")
		}
	case opRole:
		name, id, _ := strings.Cut(what, "/")
		role, ok := orchestrator.ParseUserRole(name)
		if !ok {
			return tgapi.Stale(p), nil
		}
		if err = s.Directory.SetRole(ctx, by, parseID(id), role); err == nil {
			a.Edit, err = s.open(ctx, by, parseID(id))
		}
	default:
		a = tgapi.Stale(p)
	}
	if errors.Is(err, orchestrator.ErrNoUser) || errors.Is(err, orchestrator.ErrConfigured) {
		a.Text = p.Text("users.gone")
		a.Edit, err = s.Users(ctx, by, "")
	}
	return a, err
}

func parseID(text string) orchestrator.PersonID {
	id, _ := strconv.ParseInt(text, 10, 64) // 0 if the text is not a number; no user has the ID 0
	return orchestrator.PersonID(id)
}

// invite creates a link for a new user and returns a page that shows it. The link is not stored.
func (s *Screen) invite(ctx context.Context, by orchestrator.Press, name string) (tgapi.Page, error) {
	p := s.Lang.Of(by.Conversation.Chat)
	role, ok := orchestrator.ParseUserRole(name)
	if !ok || by.Conversation.Group() {
		return tgapi.Page{Text: p.Text("users.in-private")}, nil
	}
	code, err := s.Directory.Invite(ctx, by, role)
	if err != nil {
		return tgapi.Page{}, err
	}
	return tgapi.Page{
		Text: p.Text("users.link", roleName(p, role), p.Rounded(paircode.Life), paircode.Link(s.Bot, code)),
	}, nil
}

// open returns the page of a user who joined with a link.
func (s *Screen) open(ctx context.Context, by orchestrator.Press, id orchestrator.PersonID) (tgapi.Page, error) {
	p := s.Lang.Of(by.Conversation.Chat)
	all, err := s.Directory.List(ctx)
	if err != nil {
		return tgapi.Page{}, err
	}
	for _, u := range all {
		if u.ID == id && !u.Configured {
			return tgapi.Page{Text: line(p, u), Keyboard: tgapi.Keyboard{
				s.roles(p, opRole, "/"+idText(id), u.Role),
				{button(p.Text("users.remove"), opRemove, idText(id)), button(p.Text("users.back"), opList, "")},
			}}, nil
		}
	}
	return tgapi.Page{}, orchestrator.ErrNoUser
}

// Greeting returns a message that tells an owner that a user has joined with the owner's link. The caller must store
// the message and then call the function done. If ductor knows the user already, Greeting returns no message.
func (s *Screen) Greeting(ctx context.Context,
	user orchestrator.PersonID) (notices []orchestrator.Message, done func(context.Context) error, err error) {
	if s.Directory == nil {
		return nil, nil, nil
	}
	u, fresh, err := s.Directory.Greet(ctx, user)
	if err != nil || !fresh {
		return nil, nil, err
	}
	owner := orchestrator.ConversationID{Chat: int64(u.By)}
	p := s.Lang.Of(owner.Chat)
	said := p.Text("users.joined", render.Cut(render.OneLine(u.Name), 100), int64(u.ID), roleName(p, u.Role))
	notices = append(notices, message.Compose(owner, message.Content{
		Text: render.Plain(said), Keyboard: tgapi.Keyboard{{button(p.Text("users.remove"), opRemove, idText(u.ID))}},
	}))
	return notices, func(ctx context.Context) error { return s.Directory.Greeted(ctx, user) }, nil
}

// Connected returns the text that greets the first user after the set-up of the bot. ductor is not running yet, so the
// user gets the usual greeting only later, after /start.
func Connected(language string) string { return lang.Match(language).Printer().Text("bot.paired") }
