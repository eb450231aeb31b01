package config

import (
	"maps"
	"slices"
	"strconv"
)

// User configures a user in telegram.allowed_users.
type User struct {
	Role string `toml:"role" default:"user" check:"owner|user|viewer"`
}

// Roles of users.
const (
	UserOwner  = "owner"
	UserUser   = "user"
	UserViewer = "viewer"
)

// RoleOfUser returns the role of a user in telegram.allowed_users. If no role is configured, the first user in the list
// is owner, and every other one is user.
func (c *Config) RoleOfUser(id int64) string {
	if u, ok := c.Users[strconv.FormatInt(id, 10)]; ok {
		return u.Role
	}
	if len(c.Telegram.AllowedUsers) > 0 && c.Telegram.AllowedUsers[0] == id {
		return UserOwner
	}
	return UserUser
}

// Owner returns the user who gets messages about the machine: the first user in telegram.allowed_users with the role
// owner. It returns 0 if no user has this role.
func (c *Config) Owner() int64 {
	for _, id := range c.Telegram.AllowedUsers {
		if c.RoleOfUser(id) == UserOwner {
			return id
		}
	}
	return 0
}

// checkUsers checks the users in the table [users]. All must be in telegram.allowed_users, because ductor answers only
// users in that list.
func (c *Config) checkUsers(p *problems) {
	for _, name := range slices.Sorted(maps.Keys(c.Users)) {
		key := below("users", name)
		if id, err := strconv.ParseInt(name, 10, 64); err != nil || !slices.Contains(c.Telegram.AllowedUsers, id) {
			p.add(key, "%s is not in telegram.allowed_users; add the id there", name)
		}
	}
	if len(c.Users) > 0 && c.Owner() == 0 {
		p.add("telegram.allowed_users", "no user in it is an owner: give one of them the role \"owner\" in [users.ID]")
	}
}
