package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestRolesOfUsers(t *testing.T) {
	for name, c := range map[string]struct {
		listed []int64
		users  map[string]User
		owner  int64
		roles  []string
		wrong  string
	}{
		"as they are listed": {[]int64{7, 8}, nil, 7, []string{UserOwner, UserUser}, ""},
		"named":              {[]int64{7, 8}, map[string]User{"7": {UserViewer}, "8": {UserOwner}}, 8, []string{UserViewer, UserOwner}, ""},
		"no owner":           {[]int64{7}, map[string]User{"7": {UserUser}}, 0, []string{UserUser}, "no user in it is an owner"},
		"not in the list":    {[]int64{7}, map[string]User{"9": {UserUser}}, 7, []string{UserOwner}, "9 is not in telegram.allowed_users"},
		"no id":              {[]int64{7}, map[string]User{"ann": {UserUser}}, 7, []string{UserOwner}, "ann is not in telegram.allowed_users"},
		"no role":            {[]int64{7}, map[string]User{"7": {"boss"}}, 0, []string{"boss"}, "users.7.role"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := tableOf[Config]()
			cfg.Telegram.AllowedUsers, cfg.Users = c.listed, c.users
			var p problems
			cfg.checkUsers(&p)
			visit(setting{value: reflect.ValueOf(cfg)}, p.check)
			if err := p.asError("f"); c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("problems are %v, want %q", err, c.wrong)
			}
			if got := cfg.Owner(); got != c.owner {
				t.Errorf("the owner is %d, want %d", got, c.owner)
			}
			for i, id := range c.listed {
				if got := cfg.RoleOfUser(id); got != c.roles[i] {
					t.Errorf("%d is %q, want %q", id, got, c.roles[i])
				}
			}
		})
	}
}
