-- Undoes the transaction unless a statement has changed as many rows as it had to.
CREATE FUNCTION require_rows(changed bigint, wanted bigint) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF changed <> wanted THEN
    RAISE EXCEPTION 'changed % rows of %', changed, wanted USING ERRCODE = 'no_data_found';
  END IF;
END $$;
