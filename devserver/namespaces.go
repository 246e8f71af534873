package main

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	persistencespb "go.temporal.io/server/api/persistence/v1"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/common/persistence/serialization"
	"go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/resolver"
	"go.temporal.io/server/common/searchattribute/sadefs"
	"go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// settleNamespaces brings every namespace to the wanted retention and search attributes. It runs on the file at rest:
// no cache of a running server can hold the old values.
func settleNamespaces(ctx context.Context, c *config.SQL, o options) (err error) {
	db, err := sql.NewSQLDB(sqlplugin.DbKindUnknown, c, resolver.NewNoopResolver(), log.NewNoopLogger(),
		metrics.NoopMetricsHandler)
	if err != nil {
		return fmt.Errorf("open database %s: %w", c.DatabaseName, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, name := range o.namespaces {
		if err := settleNamespace(ctx, db, c, name, o); err != nil {
			return fmt.Errorf("prepare namespace %q in %s: %w", name, c.DatabaseName, err)
		}
	}
	return nil
}

func settleNamespace(ctx context.Context, db sqlplugin.DB, c *config.SQL, name string, o options) error {
	rows, err := db.SelectFromNamespace(ctx, sqlplugin.NamespaceFilter{Name: &name})
	if errors.Is(err, stdsql.ErrNoRows) {
		return createNamespace(c, name, o)
	}
	if err != nil {
		return err
	}
	return updateNamespace(ctx, db, rows[0], o)
}

func createNamespace(c *config.SQL, name string, o options) error {
	ns, err := sqlite.NewNamespaceConfig(clusterName, name, false, nil)
	if err != nil {
		return err
	}
	if err := want(ns.Detail.Config, o.attributes, o.retention); err != nil {
		return err
	}
	return sqlite.CreateNamespaces(c, ns)
}

func updateNamespace(ctx context.Context, db sqlplugin.DB, row sqlplugin.NamespaceRow, o options) error {
	serializer := serialization.NewSerializer()
	detail, err := serializer.NamespaceDetailFromBlob(persistence.NewDataBlob(row.Data, row.DataEncoding))
	if err != nil {
		return err
	}
	before := proto.CloneOf(detail)
	if err := want(detail.Config, o.attributes, o.retention); err != nil {
		return err
	}
	if proto.Equal(before, detail) {
		return nil
	}
	data, err := serializer.NamespaceDetailToBlob(detail)
	if err != nil {
		return err
	}
	row.Data, row.DataEncoding = data.GetData(), data.GetEncodingType().String()
	_, err = db.UpdateNamespace(ctx, &row)
	return err
}

// want sets the retention and adds the search attributes that are missing. Other attributes stay.
func want(c *persistencespb.NamespaceConfig, attributes map[string]enumspb.IndexedValueType, keep time.Duration) error {
	c.Retention = durationpb.New(keep)
	if c.CustomSearchAttributeAliases == nil {
		c.CustomSearchAttributeAliases = map[string]string{}
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if err := addAttribute(c.CustomSearchAttributeAliases, name, attributes[name]); err != nil {
			return err
		}
	}
	return nil
}

// addAttribute assigns the attribute one of the table's prepared columns of its type.
func addAttribute(aliases map[string]string, name string, t enumspb.IndexedValueType) error {
	columns := sadefs.GetDBIndexSearchAttributes(nil).CustomSearchAttributes
	for column, alias := range aliases {
		if alias != name {
			continue
		}
		if has := columns[column]; has != t {
			return fmt.Errorf("search attribute %s has type %s on the server, not %s; keep the type, or choose "+
				"another --db-filename", name, has, t)
		}
		return nil
	}
	for _, column := range slices.Sorted(maps.Keys(columns)) {
		if _, used := aliases[column]; !used && columns[column] == t {
			aliases[column] = name
			return nil
		}
	}
	return fmt.Errorf("search attribute %s: no column of type %s is left", name, t)
}
