// Package users knows who may use ductor: the users of the configuration, and those who accepted an owner's invitation.
// It creates the invitations and accepts their codes.
//
// It does NOT define the rights of roles (orchestrator.UserRole does), and it knows no messages of Telegram.
package users
