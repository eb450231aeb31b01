package menu

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"ductor/bot/tgapi"
)

// Actions of the buttons in the menus.
const (
	ModelAction      = "w"
	PermissionAction = "p"
	RoleAction       = "o"
	BusyAction       = "b"
	NotifyAction     = "n"
	ThinkAction      = "th"
	DisplayAction    = "di"
	JobModelAction   = "u"
	AccountAction    = "at"
)

// commands returns, for each action, the command that opens its menu.
func commands() map[string]string {
	return map[string]string{
		ModelAction: "model", PermissionAction: "permissions", RoleAction: "role", BusyAction: "queue",
		NotifyAction: "notify",
		ThinkAction:  "think", DisplayAction: "display", JobModelAction: "cron",
		AccountAction: "account",
	}
}

// Actions returns the actions of all buttons in menus.
func Actions() []string { return slices.Collect(maps.Keys(commands())) }

// data returns the data for a button of the current step.
func (f *frame) data(op string, arg int) string {
	data, _ := tgapi.ButtonData(f.action, f.nonce+":"+strconv.Itoa(f.step)+":"+op+strconv.Itoa(arg))
	return data
}

func (f *frame) backButton() tgapi.Button {
	return tgapi.Button{Text: f.lang.Text("common.back"), Data: f.data(opBack, 0)}
}

func (f *frame) closeButton() tgapi.Button {
	return tgapi.Button{Text: f.lang.Text("common.close"), Data: f.data(opClose, 0)}
}

// paged returns the range of the choices on one page of n choices, and buttons for the other pages.
func (f *frame) paged(page, n int) (from, to int, pager tgapi.Keyboard) {
	return tgapi.Paged(f.lang, page, n, func(page int) string { return f.data(opPage, page) })
}

type op struct {
	kind byte // opAgent, opModel, …
	arg  int
}

// Values of op.kind.
const (
	opAgent   = "a"
	opModel   = "m"
	opEffort  = "e" // selects an effort; an arg of -1 stands for the model's default
	opPick    = "k" // selects an element of a listMenu
	opConfirm = "y"
	opPage    = "p"
	opBack    = "b"
	opClose   = "x"
	opRules   = "r"
	opTools   = "t"
)

func parseData(what string) (nonce string, step int, o op, ok bool) {
	parts := strings.Split(what, ":")
	if len(parts) != 3 || len(parts[2]) < 2 {
		return "", 0, op{}, false
	}
	step, err := strconv.Atoi(parts[1])
	if err != nil {
		return "", 0, op{}, false
	}
	arg, err := strconv.Atoi(parts[2][1:])
	if err != nil {
		return "", 0, op{}, false
	}
	return parts[0], step, op{kind: parts[2][0], arg: arg}, true
}
