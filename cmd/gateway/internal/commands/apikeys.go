package commands

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

func newAPIKeys() *cobra.Command {
	cmd := &cobra.Command{Use: "apikeys", Short: "Make, list and revoke API keys"}
	addClient(cmd)

	create := &cobra.Command{
		Use: "create", Short: "Make an API key and print it; it is kept nowhere", Args: arguments(cobra.NoArgs),
		Example: `  gateway apikeys create --tenant acme --scopes read,write --expires 720h
  gateway apikeys create --all-tenants --scopes admin,read,write`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			req, err := newKeyRequest(cmd)
			if err != nil {
				return err
			}
			return withAdmin(cmd, func(ctx context.Context, admin pb.AdminServiceClient) error {
				res, err := admin.CreateApiKey(ctx, req)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), res.GetText())
				return err
			})
		},
	}
	create.Flags().StringSlice("tenant", nil, "a tenant whose data the key reaches; may be given again")
	create.Flags().Bool("all-tenants", false, "the key reaches all tenants, also those to come")
	create.Flags().StringSlice("scopes", []string{"read", "write"}, "what the key may do: read, write, admin")
	create.Flags().Duration("expires", 0, "how long the key is good for (default: for ever)")

	list := &cobra.Command{
		Use: "list", Short: "List API keys, without what proves them", Args: arguments(cobra.NoArgs),
		Example: "  gateway apikeys list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd, func(ctx context.Context, admin pb.AdminServiceClient) error { return listKeys(ctx, cmd, admin) })
		},
	}
	addOutput(list)

	revoke := &cobra.Command{
		Use: "revoke ID", Short: "Refuse an API key from now on", Args: arguments(cobra.ExactArgs(1)),
		Example: "  gateway apikeys revoke k7f3qz5m2n4p6r8s",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, admin pb.AdminServiceClient) error {
				_, err := admin.RevokeApiKey(ctx, &pb.RevokeApiKeyRequest{Id: args[0]})
				return err
			})
		},
	}
	cmd.AddCommand(create, list, revoke)
	return cmd
}

func newKeyRequest(cmd *cobra.Command) (*pb.CreateApiKeyRequest, error) {
	flags := cmd.Flags()
	tenants, _ := flags.GetStringSlice("tenant")
	all, _ := flags.GetBool("all-tenants")
	names, _ := flags.GetStringSlice("scopes")
	expires, _ := flags.GetDuration("expires")
	req := &pb.CreateApiKeyRequest{Tenants: tenants, AllTenants: all}
	for _, name := range names {
		scope, known := pb.Scope_value["SCOPE_"+strings.ToUpper(name)]
		if !known || scope == 0 {
			return nil, &usageError{fmt.Errorf("--scopes has %q, not read, write or admin", name)}
		}
		req.Scopes = append(req.Scopes, pb.Scope(scope))
	}
	switch {
	case expires < 0:
		return nil, &usageError{fmt.Errorf("--expires is %v, which is over", expires)}
	case expires > 0:
		req.ExpiresAt = timestamppb.New(time.Now().Add(expires))
	}
	return req, nil
}

func listKeys(ctx context.Context, cmd *cobra.Command, admin pb.AdminServiceClient) error {
	out, err := newOutput(cmd, "id", "tenants", "scopes", "created", "expires", "revoked")
	if err != nil {
		return err
	}
	for after := ""; ; {
		res, err := admin.ListApiKeys(ctx, &pb.ListApiKeysRequest{After: after, Limit: pageSize})
		if err != nil {
			return err
		}
		for _, k := range res.GetApiKeys() {
			tenants := strings.Join(k.GetTenants(), ",")
			if k.GetAllTenants() {
				tenants = "(all)"
			}
			var scopes []string
			for _, s := range k.GetScopes() {
				scopes = append(scopes, word(s.String(), "SCOPE_"))
			}
			err := out.row(k.GetId(), tenants, strings.Join(scopes, ","), moment(k.GetCreatedAt()), moment(k.GetExpiresAt()), moment(k.GetRevokedAt()))
			if err != nil {
				return err
			}
		}
		if after = res.GetNext(); after == "" {
			return out.end()
		}
	}
}
